// Keeps an open page up to date: when the fleet changes, the page is fetched again and those
// of its parts that changed take the place of the old ones. Without scripts it is read as it is.
"use strict";
(() => {
	const status = document.getElementById("connection");
	const gap = 1000; // the shortest time between two fetches, in milliseconds
	const retry = 2000; // after the server refused
	const pause = 5000; // after a page that was none
	let lost = false, fetching = false, again = false, last = 0;

	const say = (text, isLost) => {
		lost = isLost;
		status.textContent = text;
		status.classList.toggle("lost", isLost);
		document.documentElement.dataset.live = isLost ? "lost" : "live";
	};

	// listen follows the server's events, and goes on after it was away.
	const listen = () => {
		const events = new EventSource("/api/v1/events");
		events.onopen = () => {
			const back = lost;
			say(back ? "Connected again" : "Live", false);
			if (back) refresh();
		};
		for (const kind of ["change", "reload"]) events.addEventListener(kind, refresh);
		events.addEventListener("hello", (e) => {
			const made = document.getElementById("made").dataset.generation;
			if (!e.lastEventId.endsWith("-" + made)) refresh(); // it changed between page and stream
		});
		events.onerror = () => {
			say("Connection lost, reconnecting…", true);
			if (events.readyState === EventSource.CLOSED) setTimeout(listen, retry);
		};
	};

	// refresh fetches the page again, once at a time and not too often.
	const refresh = async () => {
		if (fetching || document.hidden) {
			again = true;
			return;
		}
		fetching = true;
		again = false;
		await new Promise((done) => setTimeout(done, Math.max(0, last + gap - Date.now())));
		last = Date.now();
		try {
			const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
			const page = new DOMParser().parseFromString(await answer.text(), "text/html");
			if (!page.getElementById("made")) throw new Error("no page of Ingot"); // refused, or a proxy's
			take(page);
			if (document.documentElement.dataset.live === "live") status.textContent = "Live";
		} catch {
			again = true; // the next event, or the server's return, tries again
			fetching = false;
			if (!lost) setTimeout(refresh, pause);
			return;
		}
		fetching = false;
		if (again) refresh();
	};

	// take takes over what is different. What a person is at stays: focus, scrolling, open
	// details and a form that is being filled in.
	const take = (now) => {
		const held = where(document.activeElement);
		merge(document.getElementById("main"), now.getElementById("main"));
		for (const id of ["nav", "made"]) {
			const old = document.getElementById(id), fresh = now.getElementById(id);
			if (old && fresh && !old.isEqualNode(fresh)) old.replaceWith(fresh);
		}
		document.title = now.title;
		if (held && !document.activeElement?.closest("main, nav")) held()?.focus({ preventScroll: true });
	};

	const merge = (old, fresh) => {
		if (!old || !fresh) return;
		const have = new Map([...old.children].map((e) => [e.id, e]));
		let at = old.firstElementChild;
		for (const part of [...fresh.children]) {
			const was = have.get(part.id);
			have.delete(part.id);
			if (was && (was.isEqualNode(part) || was.tagName === "FORM")) {
				if (was !== at) old.insertBefore(was, at); else at = at.nextElementSibling;
			} else if (was && part.className === "cards") {
				merge(was, part);
				if (was === at) at = at.nextElementSibling;
			} else if (was) {
				if (was === at) at = at.nextElementSibling;
				keep(was, part);
				was.replaceWith(part);
			} else {
				old.insertBefore(part, at);
			}
		}
		for (const gone of have.values()) gone.remove();
	};

	// keep has a new part look like the old one where a person changed that.
	const keep = (old, fresh) => {
		for (const d of old.querySelectorAll("details[id]")) {
			const other = fresh.querySelector(`#${CSS.escape(d.id)}`);
			if (other) other.open = d.open;
		}
		for (const s of old.querySelectorAll(".scroll[id]")) {
			const { scrollLeft, scrollTop } = s, id = s.id;
			if (scrollLeft || scrollTop) queueMicrotask(() => document.getElementById(id)?.scrollTo(scrollLeft, scrollTop));
		}
	};

	// where returns how to find an element again: by its id, or as a link to the same address.
	const where = (e) => {
		if (!e || !e.closest("main, nav")) return null;
		if (e.id) return () => document.getElementById(e.id);
		const href = e.getAttribute("href"), part = e.closest("[id]")?.id;
		if (!href || !part) return null;
		return () => document.querySelector(`#${CSS.escape(part)} a[href="${CSS.escape(href)}"]`) || document.querySelector(`main a[href="${CSS.escape(href)}"]`);
	};

	document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
	setInterval(refresh, 60000); // for what tells how long ago something was
	listen();
})();
