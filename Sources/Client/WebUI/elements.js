// What both pages build with: elements by id, icons, and a list that is updated without being drawn anew.
export const $ = (id) => document.getElementById(id);

export const show = (id, isShown) => { $(id).hidden = !isShown; };

/**
 * An element with properties and children; a child that is a string becomes text and never markup. `data` goes to `dataset`, a name with a
 * dash (`aria-label`) becomes an attribute.
 */
export function make(tag, { data = {}, ...properties } = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-")) element.setAttribute(name, value); else element[name] = value;
  }
  Object.assign(element.dataset, data);
  element.append(...children);
  return element;
}

/** Text is written only where it changed: a selection in it stays, and a screen reader does not repeat it. */
export function write(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** The symbol `i-NAME` of the page. */
export function icon(name) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const use = document.createElementNS("http://www.w3.org/2000/svg", "use");
  use.setAttribute("href", `#i-${name}`);
  svg.setAttribute("aria-hidden", "true");
  svg.append(use);
  return svg;
}

/** A button with a `span` for its label and a `use` for its icon. The label says what a click does next. */
export function label(id, text, icon, isOn = false) {
  const button = $(id);
  write(button.querySelector("span"), text);
  if (icon) button.querySelector("use").setAttribute("href", `#i-${icon}`);
  button.classList.toggle("on", isOn);
}

/**
 * Gives `parent` one child for each item, in their order. A child is made once for its key and updated from then on, so that focus and selection
 * in it stay; it is moved only where the order changed.
 * - `key(item)`: a string, different for each item; the second item of a key is left out.
 * - `create(item)`: a new element. `update(element, item)`: called for each item each time, also after `create`.
 * - `keep(child)`: true for children that are no item's; they stay before the rows.
 */
export function fillRows(parent, items, { key, create, update = () => {}, keep = () => false }) {
  const before = new Map([...parent.children].filter((child) => !keep(child)).map((child) => [child.dataset.key, child]));
  const wanted = new Map();
  for (const item of items) if (!wanted.has(key(item))) wanted.set(key(item), item);
  for (const [name, child] of before) if (!wanted.has(name)) child.remove();
  let next = [...parent.children].find((child) => !keep(child)) ?? null;
  for (const [name, item] of wanted) {
    const child = before.get(name) ?? create(item);
    child.dataset.key = name;
    update(child, item);
    if (child === next) {
      next = next.nextElementSibling;
    } else if (next && child === next.nextElementSibling) {
      // the one before it went away from here: it is moved, and not all that follow
      const after = child.nextElementSibling;
      parent.append(next);
      next = after ?? next;
    } else {
      parent.insertBefore(child, next);
    }
  }
}
