// What the product is called: `branding.name` of the configuration, which the gateway writes into the page.
export const PRODUCT = "Trunkline";
export const brandName = globalThis.document?.querySelector?.('meta[name="application-name"]')?.content || PRODUCT;

/** A text that names the product, with the name that it has here. */
export const branded = (text) => (brandName === PRODUCT ? text : text.replaceAll(PRODUCT, brandName));
