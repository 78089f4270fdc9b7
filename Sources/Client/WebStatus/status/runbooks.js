// docs/operate/runbooks.md of the version that runs, as a page: the gateway has it with it, for at night the internet may be what is down.
import { $, make } from "../ui/elements.js";

/** As GitHub makes the anchor of a heading. */
export const anchor = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} -]/gu, "").replaceAll(" ", "-");

/** Text, `code`, *emphasis* and links of a line. A link to another page has no target here: its text stays, with the page's path. */
export function inline(text) {
  const out = [];
  let rest = text;
  while (rest) {
    const found = /`([^`]+)`|\[([^\]]+)\]\(([^)]+)\)|\*([^*]+)\*/.exec(rest);
    if (!found) return [...out, rest];
    if (found.index) out.push(rest.slice(0, found.index));
    const [whole, code, label, href, emphasis] = found;
    if (code) out.push(make("code", { textContent: code }));
    else if (emphasis) out.push(make("em", { textContent: emphasis }));
    else if (href.startsWith("#")) out.push(make("a", { href, textContent: label }));
    else out.push(make("span", { textContent: label, title: new URL(href, "file:///docs/operate/").pathname.slice(1) }));
    rest = rest.slice(found.index + whole.length);
  }
  return out;
}

/** Headings, lists, code blocks and paragraphs: what the runbooks are written with. */
export function page(markdown) {
  const out = [], blocks = markdown.split(/\n{2,}/);
  for (const block of blocks) {
    const heading = /^(#{1,3}) (.*)$/.exec(block);
    if (heading) out.push(make(`h${heading[1].length}`, { id: anchor(heading[2]), textContent: heading[2] }));
    else if (block.startsWith("```")) out.push(make("pre", { tabIndex: 0, textContent: block.replace(/^```.*\n|\n?```$/g, "") }));
    else if (/^- /.test(block)) out.push(make("ul", {}, ...block.split(/\n(?=- )/).map((item) => make("li", {}, ...inline(item.slice(2).replaceAll("\n", " "))))));
    else if (block.trim()) out.push(make("p", {}, ...inline(block.replaceAll("\n", " "))));
  }
  return out;
}

async function load() {
  const answer = await fetch("runbooks.md").catch(() => null);
  if (!answer?.ok) return $("runbooks").replaceChildren(make("p", { textContent: "The gateway does not answer. The same text is in docs/operate/runbooks.md of the source." }));
  $("runbooks").replaceChildren(...page(await answer.text()));
  // the section of the address was not there yet when the page was loaded
  const section = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!section) return;
  section.tabIndex = -1;
  section.scrollIntoView();
  section.focus();
}
if (globalThis.document) load();
