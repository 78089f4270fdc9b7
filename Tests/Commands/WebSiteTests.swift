import Foundation
import Testing

@testable import AppServer
@testable import Configuration
@testable import trunkline

/// The pages that both ports serve, with a brand and without.
@Suite struct WebSiteTests {
  private func text(_ site: WebSite, _ path: String, status: Bool = false) throws -> String {
    let bytes = status ? site.status[path]?.body : site.phone.first { $0.path == path }?.bytes
    return String(decoding: try #require(bytes, "\(path)"), as: UTF8.self)
  }
  private var acme: WebSite {
    var branding = Settings.Branding()
    (branding.name, branding.color) = ("<b>Ac\"me & Co", RGBColor("#0a5c36"))
    branding.logo = .init(format: .svg, bytes: Array("<svg/>".utf8))
    return WebSite(branding)
  }

  @Test func `without a brand the files are as they are embedded`() {
    let site = WebSite(.init())
    #expect(site.phone.map(\.bytes) == WebFiles.phone.map(\.bytes) && site.status.count == WebFiles.status.count)
  }

  @Test(arguments: [false, true])
  func `a name stands wherever the product's stood, and its markup is text`(isStatus: Bool) throws {
    let page = try text(acme, "/", status: isStatus)
    let escaped = "&lt;b&gt;Ac&quot;me &amp; Co"
    for markup in ["<title>\(escaped)", "<meta name=\"application-name\" content=\"\(escaped)\">", ">\(escaped)</h1>"] {
      #expect(page.contains(markup), "\(markup)")
    }
    #expect(!page.contains("Trunkline") && !page.contains("<b>"))
    #expect(
      page.contains("<link rel=\"icon\" href=\"ui/logo.svg\" type=\"image/svg+xml\">")
        && page.contains("<img src=\"ui/logo.svg\""))
    #expect(!page.contains("\"icon.svg\"") && !page.contains("icon-192.png"))
    #expect(try text(acme, "/ui/logo.svg", status: isStatus) == "<svg/>")
    #expect(try text(acme, "/ui/brand.css", status: isStatus) == ":root { --brand: #0a5c36; --on-brand: #ffffff; }\n")
  }

  @Test(arguments: ["manifest", "manifest-de", "manifest-fr", "manifest-es"])
  func `the installed phone has the name, the colour and no icon but the logo, in every language`(manifest: String) throws {
    struct Manifest: Decodable {
      struct Icon: Decodable { var src, sizes, type: String }
      var name, short_name, theme_color, description: String
      var icons: [Icon]
    }
    let json = try JSONDecoder().decode(Manifest.self, from: Data(try text(acme, "/\(manifest).webmanifest").utf8))
    #expect(json.name == "<b>Ac\"me & Co" && json.short_name == json.name && json.theme_color == "#0a5c36")
    #expect(
      !json.description.contains("Trunkline") && json.icons.map(\.src) == ["/ui/logo.svg"] && json.icons.map(\.sizes) == ["any"])
    #expect(
      try text(acme, "/").contains("<meta name=\"theme-color\" content=\"#0a5c36\" media=\"(prefers-color-scheme: dark)\">"))
  }

  @Test func `the status page runs its own scripts alone and asks its own port alone`() throws {
    for (path, response) in acme.status {
      let policy = try #require(response.headers.first { $0.name == "Content-Security-Policy" }?.value)
      #expect(
        policy.hasPrefix("default-src 'none'; script-src 'self'; style-src 'self'; ") && !policy.contains("unsafe"), "\(path)")
      #expect(policy.contains("connect-src 'self'; ") && policy.contains("frame-ancestors 'none'"))
    }
    let page = try text(acme, "/", status: true)
    #expect(!page.contains(" style=") && !page.contains(" onclick=") && !page.contains("<script>"))
  }
}
