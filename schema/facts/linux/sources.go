package linux

// Source is a tree that the facts of a kernel were read from.
type Source struct {
	Kernel     string   // as in kernel.Sets; "" for all
	Repository string   // on GitHub, or a Debian source package
	Commit     string   // or the package's upstream version
	Roots      []string // folders of the kernel and its overlays in the repository
	Note       string   // what differs from the kernel that the releases build
	OutOfTree  bool     // modules that recipes of the BSP build outside of the kernel
}

// Sources lists the inputs of the tables.
func Sources() []Source {
	const vendor = "alliedvision/linux_nvidia_jetson"
	return []Source{
		{Kernel: "4.9", Repository: vendor, Commit: "4a4f0214f4a7e4b4b69131becae1932dbf585ead", Roots: []string{"kernel/kernel-4.9", "kernel/nvidia", "kernel/nvgpu"},
			Note: "L4T 32.7.2, with one vendor's camera drivers"},
		{Kernel: "5.10", Repository: vendor, Commit: "d0e111405930baef3da165a02bef0a41879188ee", Roots: []string{"kernel/kernel-5.10", "kernel/nvidia", "kernel/nvgpu"},
			Note: "L4T 35.4.1, with one vendor's camera drivers"},
		{Kernel: "5.15", Repository: "realcedriccheng/linux-5.15.148_2024-6-28", Commit: "fb45e8d63f47bf5afe96c0418a9b0c13c7ef9f19",
			Note: "upstream 5.15.148: what Ubuntu and NVIDIA add to it is not in the table"},
		{Kernel: "6.1", Repository: "linux-source-6.1", Commit: "6.1.192", Note: "Debian's package 6.1.192-3, SHA-256 5259c57ca92092da39bd2ea803046da0e3c28f2b6a11ea20f6297468188ceb67"},
		{Kernel: "6.8", Repository: "sndrzt/linux-6.8", Commit: "f116ff45a2ca08fe178a156f8d4d843c03990cb6",
			Note: "Ubuntu 6.8.0-31, the base of NVIDIA's noble tree"},
		{Kernel: "6.12", Repository: "linux-source-6.12", Commit: "6.12.117", Note: "Debian's package 6.12.117-1~deb12u1, SHA-256 e849faf31ca3555757f3a8877cb01af92122f744f75d1f3102734651c4e14703"},
		{Kernel: "6.18", Repository: "gfunkmonk/linux-6.18.2", Commit: "57dc26c98e5e9eaee49a7ee9f46cfae53057b110",
			Note: "upstream 6.18.2: linux-yocto adds to it"},
		{Kernel: "5.15", Repository: "OE4T/linux-nv-oot", Commit: "087418781c377c7e1aeae138024ef5c81950f85e", OutOfTree: true},
		{Kernel: "5.15", Repository: "OE4T/linux-hwpm", Commit: "d47dc62f4011ffbb0353ba43df5cfb42b967bef2", OutOfTree: true},
		{Kernel: "5.15", Repository: "OE4T/linux-nvgpu", Commit: "8a0a5345705e069e398a79dbcba96c5db54a37f1", OutOfTree: true},
	}
}

// Program is a source of arguments that programs read from the kernel's command line.
type Program struct {
	Name, Repository, Commit, File string
}

// Programs lists them.
func Programs() []Program {
	const systemd, man = "systemd/systemd-stable", "man/kernel-command-line.xml"
	return []Program{
		{"systemd", systemd, "b19b7c67e9cb74c44c43a0daf6172f9d32f134ec", man},
		{"systemd", systemd, "565916c245b53b49f5917f5326d21246f46ae3db", man},
		{"systemd", systemd, "5c79cdec10a547a866764a66e1e14898112a00cd", man},
		{"dracut", "dracut-ng/dracut-ng", "02e7ae10830d1268f1acdf879ef14d5b6bc89ac3", "man/dracut.cmdline.7.adoc"},
	}
}
