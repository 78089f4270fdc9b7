// The keyboard is always somewhere: an element that is hidden, disabled or removed while it has the focus leaves it to the page's body, from which
// a screen reader begins anew.
const isThere = (element) => !!element?.isConnected && !element.disabled && element.checkVisibility();

/**
 * Runs `change`, and if it took the element with the focus away, gives the focus to the first of `candidates()` that can be seen. An element that
 * takes no focus by itself, as a heading, takes it once.
 */
export function keepFocus(change, candidates) {
  const before = document.activeElement;
  const result = change();
  const now = document.activeElement;
  // who changes the page may move the focus, and a page without focus keeps none
  if (!before || before === document.body || (now !== before && now !== document.body) || isThere(before)) return result;
  focusFirst(candidates());
  return result;
}

/** Gives the focus to the first of them that can be seen; false if there is none. */
export function focusFirst(candidates) {
  const next = [...candidates].find(isThere);
  if (!next) return false;
  next.focus();
  if (document.activeElement !== next) {
    next.tabIndex = -1;
    next.focus();
  }
  return true;
}
