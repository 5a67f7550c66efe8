// Puts each new <main> in the place of the old one, and the focus back where it was.
const events = new EventSource(document.currentScript.dataset.stream);
const main = document.querySelector('main');
events.onmessage = event => {
	const focus = document.activeElement?.id;
	main.innerHTML = event.data;
	if (focus) document.getElementById(focus)?.focus();
	document.body.classList.remove('stale');
};
events.onerror = () => document.body.classList.add('stale');
