import HTTP
import Testing

@Suite struct WebOriginTests {
  @Test(arguments: [
    ("https://phone.example", "https://phone.example"), ("HTTPS://Phone.Example:443", "https://phone.example"),
    ("http://phone.example:80", "http://phone.example"), ("http://phone.example:443", "http://phone.example:443"),
    ("https://phone.example:8443", "https://phone.example:8443"), ("https://phone.example:", "https://phone.example"),
    ("https://[2001:DB8::1]:443", "https://[2001:db8::1]"), ("https://[2001:db8::1]", "https://[2001:db8::1]"),
  ])
  func `an origin has one spelling`(text: String, canonical: String) {
    #expect(WebOrigin(text)?.description == canonical)
    #expect(WebOrigin.canonical(text) == canonical)
  }

  @Test(arguments: [
    "null", "", "https://", "https://:443", "phone.example", "https://phone.example/", "https://user@phone.example",
    "https://phone.example:x", "https://phone example", "https://phone.example\u{0}", "https://phöne.example",
  ])
  func `what is no origin is none, and stays as it is`(text: String) {
    #expect(WebOrigin(text) == nil)
    #expect(WebOrigin.canonical(text) == text)
  }

  @Test func `a host is compared with the scheme that it was reached by`() {
    #expect(WebOrigin(scheme: "https", host: "Phone.example:443") == WebOrigin("https://phone.example"))
    #expect(WebOrigin(scheme: "http", host: "phone.example:443") != WebOrigin("https://phone.example"))
  }
}
