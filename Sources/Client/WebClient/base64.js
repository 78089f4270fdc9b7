// Base64url, and what is in it.

/** The bytes of Base64url. */
export const bytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));

/** The claims of a JWT, unverified. */
export function claims(token) {
  try { return JSON.parse(new TextDecoder().decode(bytes(token.split(".")[1]))) ?? {}; } catch { return {}; }
}
