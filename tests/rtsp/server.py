#!/usr/bin/python3
"""GStreamer's own RTSP server, which streams raw NV12 frames as H.264.

    server.py PORT WIDTH HEIGHT FPS FILE [USER PASSWORD]

PORT 0 takes one that is free. The port is printed when the server listens.
"""
import sys

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer  # noqa: E402

port, width, height, fps, clip = sys.argv[1:6]
Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service(port)
factory = GstRtspServer.RTSPMediaFactory()
factory.set_launch(
    f"( filesrc location={clip} ! rawvideoparse format=nv12 width={width} height={height} framerate={fps}/1"
    " ! videoconvert ! openh264enc gop-size=10 bitrate=2000000 ! h264parse ! rtph264pay name=pay0 pt=96 )"
)
if len(sys.argv) > 6:
    user, password = sys.argv[6:8]
    auth = GstRtspServer.RTSPAuth()
    token = GstRtspServer.RTSPToken()
    token.set_string("media.factory.role", "viewer")
    auth.add_basic(GstRtspServer.RTSPAuth.make_basic(user, password), token)
    server.set_auth(auth)
    factory.add_role_from_structure(Gst.Structure.new_from_string("viewer, media.factory.access=true, media.factory.construct=true"))
server.get_mount_points().add_factory("/stream", factory)
if server.attach(None) == 0:
    sys.exit(f"port {port} cannot be listened on")
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
