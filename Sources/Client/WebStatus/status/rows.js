// Tables whose rows are updated in place: what is selected, opened or has the focus stays so while numbers change.
import { fillRows, make, write } from "../ui/elements.js";

/**
 * A table with a head and a row for each item; a click on a row's first cell opens what the row has no room for.
 *
 *     const draw = tableOf($("trunks"), {
 *       key: (trunk) => trunk.trunk, none: "No trunks",
 *       columns: [{ name: "Trunk", of: (trunk) => trunk.trunk }, { name: "State", of: (trunk) => ({ text: "Up", level: "good" }) }],
 *       details: (trunk) => [["Servers", "192.0.2.1:5060 up"]],
 *     });
 *     draw(trunks);
 *
 * A cell is a text, or `{text, level, link}`: `level` is `good`, `wait` or `bad`, `link` is `{label, href}`.
 */
export function tableOf(table, { key, columns, details, none }) {
  const names = make("tr", { role: "row" }, ...columns.map(({ name }) => make("th", { textContent: name, scope: "col", role: "columnheader" })));
  table.setAttribute("role", "table"); // narrow rows are laid out as cards, which would take the roles away
  const head = make("thead", { role: "rowgroup" }, names);
  const empty = make("tbody", { role: "rowgroup", className: "none" }, make("tr", { role: "row" }, make("td", { colSpan: columns.length, role: "cell", textContent: none })));
  table.append(head, empty);
  const rows = { key, create: () => rowOf(table.id, columns), update: (body, item) => update(body, item, columns, details) };
  return (items, text = none) => {
    setShown(head, items.length > 0);
    setShown(empty, items.length === 0);
    write(empty.querySelector("td"), text);
    fillRows(table, items, { ...rows, keep: (child) => child === head || child === empty });
  };
}

const setShown = (element, isShown) => { element.hidden = !isShown; };
let made = 0;

function rowOf(id, columns) {
  const number = ++made, detail = `${id}-${number}`;
  const button = make("button", { type: "button", className: "open", "aria-expanded": "false", "aria-controls": detail }, make("span", { className: "cut" }));
  const cells = columns.map(({ name, wide }, at) => {
    const cell = make("td", { role: "cell", className: wide ? "wide" : "", data: { name } });
    cell.append(at === 0 ? button : make("span", { className: "cut" }));
    return cell;
  });
  const list = make("dl", {});
  const more = make("tr", { role: "row", id: detail, className: "more", hidden: true }, make("td", { role: "cell", colSpan: columns.length }, list));
  button.onclick = () => {
    more.hidden = !more.hidden;
    button.ariaExpanded = String(!more.hidden);
  };
  return make("tbody", { role: "rowgroup" }, make("tr", { role: "row", className: "main" }, ...cells), more);
}

function update(body, item, columns, details) {
  const [main, more] = body.children;
  columns.forEach((column, at) => {
    const value = column.of(item), { text, level = "", link = null } = typeof value === "object" ? value : { text: value };
    const cell = main.children[at], words = cell.querySelector(".cut");
    write(words, text || "–");
    // the whole text is at hand for who points at it; for who does not, it is among the details
    if (words.title !== text) words.title = text;
    cell.dataset.level = level;
    if (text) delete cell.dataset.empty; else cell.dataset.empty = "";
    const known = cell.querySelector("a");
    if (!link) known?.remove();
    else if (known?.getAttribute("href") !== link.href) {
      known?.remove();
      cell.append(make("a", { href: link.href, textContent: link.label }));
    }
  });
  const list = more.querySelector("dl");
  fillRows(list, details(item).filter(([, text]) => text), {
    key: ([name]) => name, create: ([name]) => make("div", {}, make("dt", { textContent: name }), make("dd", {})),
    update: (pair, [, text]) => write(pair.lastElementChild, text),
  });
}
