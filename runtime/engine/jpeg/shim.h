/* The part of libjpeg-turbo's TurboJPEG API, as it has been since 1.4, that makes
 * planes of a JPEG image; loaded with dlopen. Nothing here keeps state between calls
 * but the decoder. */
#ifndef YOCTUNE_JPEG_SHIM_H
#define YOCTUNE_JPEG_SHIM_H

#include <stddef.h>
#include <stdint.h>

enum { JPEG_OK = 0, JPEG_FAILED = 1, JPEG_DAMAGED = 2 };

typedef struct jpeg_library {
	void *(*init)(void);
	int (*destroy)(void *);
	int (*header)(void *, const unsigned char *, unsigned long, int *, int *, int *, int *);
	int (*planes)(void *, const unsigned char *, unsigned long, unsigned char **, int, int *, int, int);
	char *(*error)(void);
} jpeg_library;

typedef struct jpeg_decoder {
	const jpeg_library *lib;
	void *handle;
	unsigned char *scratch;
	size_t size;
	char msg[256];
} jpeg_decoder;

int jpeg_load(jpeg_library *lib, const char *path, char *msg, size_t size);
int jpeg_start(jpeg_decoder *d, const jpeg_library *lib);
void jpeg_stop(jpeg_decoder *d);
int jpeg_size(jpeg_decoder *d, const unsigned char *data, size_t length, int *width, int *height);
/* out has the planes of a width x height frame, 4:2:0, one after another; the image is
 * shrink times as wide and as high: 1, 2, 4 or 8. */
int jpeg_decode(jpeg_decoder *d, const unsigned char *data, size_t length, unsigned char *out, int width, int height, int shrink);

#endif
