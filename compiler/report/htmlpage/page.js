(function () {
	"use strict";
	var at = -1;
	document.addEventListener("keydown", function (event) {
		if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest("input, textarea, select")) {
			return;
		}
		var stops = Array.prototype.slice.call(document.querySelectorAll("[data-stop]"));
		if (event.key === "j" || event.key === "k") {
			at = Math.min(Math.max(at + (event.key === "j" ? 1 : -1), 0), stops.length - 1);
			if (stops[at]) {
				var stop = stops[at];
				stop.scrollIntoView({block: "start"});
				(stop.tagName === "DETAILS" ? stop.querySelector("summary") : stop).focus({preventScroll: true});
			}
		} else if (event.key === "e") {
			var files = Array.prototype.slice.call(document.querySelectorAll("main details"));
			var open = files.some(function (f) { return !f.open; });
			files.forEach(function (f) { f.open = open; });
		}
	});
	function reveal() {
		var target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
		if (target && target.tagName === "DETAILS") {
			target.open = true;
		}
	}
	window.addEventListener("hashchange", reveal);
	reveal();
})();
