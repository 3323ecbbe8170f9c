// Keeps an open page up to date: when the fleet changes, the page is fetched again, and the changed parts
// replace the old ones. It also adds buttons that copy commands. Without scripts the page works the same.
"use strict";
(() => {
	const status = document.getElementById("connection");
	const gap = 1000; // minimum time between two fetches, in milliseconds
	const retry = 2000; // after a refused event stream
	const pause = 5000; // after a failed fetch
	let lost = false, fetching = false, again = false, last = 0;

	const say = (text, isLost) => {
		lost = isLost;
		status.textContent = text;
		status.classList.toggle("lost", isLost);
		document.documentElement.dataset.live = isLost ? "lost" : "live";
	};

	// listen follows the events of the server, and reconnects.
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
			if (!e.lastEventId.endsWith("-" + made)) refresh(); // the fleet changed between page and stream
		});
		events.onerror = () => {
			say("Connection lost, reconnecting…", true);
			if (events.readyState === EventSource.CLOSED) setTimeout(listen, retry);
		};
	};

	// refresh fetches the page again, one fetch at a time and at most one per second.
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
			if (!page.getElementById("made")) throw new Error("not a page of Ingot"); // refused, or from a proxy
			take(page);
			if (document.documentElement.dataset.live === "live") status.textContent = "Live";
		} catch {
			again = true; // the next event or connection tries again
			fetching = false;
			if (!lost) setTimeout(refresh, pause);
			return;
		}
		fetching = false;
		if (again) refresh();
	};

	// take replaces the changed parts. Focus, scroll positions, open details and forms stay.
	const take = (now) => {
		const held = where(document.activeElement);
		addButtons(now);
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

	// keep copies open details and scroll positions to a new part.
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

	// where returns a function that finds an element again: by its id, or as a link to the same address.
	const where = (e) => {
		if (!e || !e.closest("main, nav")) return null;
		if (e.id) return () => document.getElementById(e.id);
		const href = e.getAttribute("href"), part = e.closest("[id]")?.id;
		if (!href || !part) return null;
		return () => document.querySelector(`#${CSS.escape(part)} a[href="${CSS.escape(href)}"]`) || document.querySelector(`main a[href="${CSS.escape(href)}"]`);
	};

	// addButtons adds a button after each text with a command. Browsers copy only on HTTPS and on this machine.
	const addButtons = (page) => {
		if (!navigator.clipboard) return;
		for (const text of page.querySelectorAll("[data-copy]")) {
			const button = page.createElement("button");
			button.type = "button";
			button.className = "copy";
			button.textContent = "Copy command";
			button.title = text.dataset.copy;
			text.after(" ", button);
		}
	};

	document.addEventListener("click", async (e) => {
		const button = e.target.closest("button.copy");
		if (!button) return;
		try {
			await navigator.clipboard.writeText(button.title);
			button.textContent = "Copied";
		} catch {
			button.textContent = "Copy refused by the browser";
		}
		setTimeout(() => { button.textContent = "Copy command"; }, 2000);
	});
	document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
	setInterval(refresh, 60000); // for the ages
	addButtons(document);
	listen();
})();
