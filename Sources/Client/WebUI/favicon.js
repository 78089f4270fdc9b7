// What is seen of the page while another tab is in front: its title and its icon. The state is a shape as well as a colour.
const SIGNS = {
  good: ["#1a7f37", "M9 16.5l5 5 9-11"],
  wait: ["#8a6100", "M16 9v8M16 22.5v.1"],
  bad: ["#c02626", "M10.5 10.5l11 11M21.5 10.5l-11 11"],
  unknown: ["#5b6470", "M12 12.5a4 4 0 1 1 5.5 3.7c-1 .5-1.5 1-1.5 2.3M16 22.5v.1"],
};

/** `good`, `wait`, `bad` or `unknown`; null: the page's own icon again. */
export function setIcon(level) {
  const link = document.querySelector('link[rel="icon"]');
  link.dataset.own ??= link.getAttribute("href");
  const [colour, path] = SIGNS[level] ?? [];
  const sign = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><circle cx="16" cy="16" r="15" fill="${colour}"/>`
    + `<path d="${path}" fill="none" stroke="#fff" stroke-width="3.5" stroke-linecap="round" stroke-linejoin="round"/></svg>`;
  const href = path ? `data:image/svg+xml,${encodeURIComponent(sign)}` : link.dataset.own;
  if (link.getAttribute("href") !== href) link.setAttribute("href", href);
}

export function setTitle(text) {
  if (document.title !== text) document.title = text;
}
