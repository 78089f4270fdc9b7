import AppServer
import Configuration

/// The embedded pages with a brand: name, colour and logo replace marked parts of the files; the rest is unchanged.
struct WebSite: Sendable {
  private let branding: Settings.Branding

  init(_ branding: Settings.Branding) { self.branding = branding }

  /// The web phone's files by path.
  var phone: [WebFiles.File] { WebFiles.phone.map(branded) + logo }

  /// The status page's files, as the admin port answers them.
  var status: [String: AdminResponse] {
    let files = (WebFiles.status.map(branded) + logo).map { ($0.path, Self.response($0)) }
    return Dictionary(files) { first, _ in first }
  }

  /// Only its own scripts and styles run, and it connects only to the port that served it.
  private static func response(_ file: WebFiles.File) -> AdminResponse {
    AdminResponse(
      200, contentType: file.contentType,
      headers: [
        (
          "Content-Security-Policy",
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
            + "form-action 'none'; frame-ancestors 'none'"
        ),
        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"), ("Referrer-Policy", "no-referrer"),
      ], body: file.bytes)
  }

  // MARK: the marked parts

  private static let product = Settings.Branding.productName
  /// The path of the stylesheet with the brand's colour, and of the logo.
  static let stylesheet = "/ui/brand.css"
  private var logoPath: String? { branding.logo.map { "ui/logo.\($0.format.rawValue)" } }

  private var logo: [WebFiles.File] {
    guard let logo = branding.logo, let logoPath else { return [] }
    return [.init(path: "/" + logoPath, contentType: logo.contentType, bytes: logo.bytes)]
  }

  private func branded(_ file: WebFiles.File) -> WebFiles.File {
    var file = file
    if file.path == Self.stylesheet, let color = branding.color {
      file.bytes = Array(":root { --brand: \(color); --on-brand: \(color.textColor); }\n".utf8)
    } else if file.contentType.hasPrefix("text/html") {
      file.bytes = Array(page(String(decoding: file.bytes, as: UTF8.self)).utf8)
    } else if file.path.hasSuffix(".webmanifest") {
      file.bytes = Array(manifest(String(decoding: file.bytes, as: UTF8.self)).utf8)
    }
    return file
  }

  /// Replaces the marked parts of a page: its title, its `application-name`, the heading, the icons and the colour of the
  /// browser's bar.
  private func page(_ html: String) -> String {
    let name = Self.escaped(branding.name)
    var html = html
    if branding.name != Self.product {
      for (before, after) in [("<title>", ""), ("name=\"application-name\" content=\"", "\""), (">", "</h1>")] {
        html = html.replacing(before + Self.product + after, with: before + name + after)
      }
    }
    if let logoPath, let logo = branding.logo {
      let type = logo.contentType
      for icon in ["icon.svg", "status/icon.svg"] {
        html = html.replacing(
          "<link rel=\"icon\" href=\"\(icon)\" type=\"image/svg+xml\">",
          with: "<link rel=\"icon\" href=\"\(logoPath)\" type=\"\(type)\">")
        html = html.replacing("<img src=\"\(icon)\"", with: "<img src=\"\(logoPath)\"")
      }
      html = html.replacing(
        "<link rel=\"apple-touch-icon\" href=\"icon-192.png\">", with: "<link rel=\"apple-touch-icon\" href=\"\(logoPath)\">")
    }
    if let color = branding.color {
      for usual in ["#ffffff", "#1b1f25"] {
        html = html.replacing("name=\"theme-color\" content=\"\(usual)\"", with: "name=\"theme-color\" content=\"\(color)\"")
      }
    }
    return html
  }

  private func manifest(_ json: String) -> String {
    var json = json
    if branding.name != Self.product {
      let name = Self.quoted(branding.name)
      // in every language
      json = json.replacing(#/"(name|short_name)": "[^"]*"/#) { "\"\($0.output.1)\": \(name)" }
      json = json.replacing("through a \(Self.product) gateway", with: "through a gateway")
    }
    if let color = branding.color {
      json = json.replacing("\"theme_color\": \"#14713a\"", with: "\"theme_color\": \"\(color)\"")
    }
    // only the logo: a system could otherwise show our own icon
    if let logoPath, let logo = branding.logo, let icons = json.firstRange(of: #/"icons": \[[^\]]*\]/#) {
      let icon = #"{ "src": "/\#(logoPath)", "sizes": "\#(logo.sizes)", "type": "\#(logo.contentType)", "purpose": "any" }"#
      json.replaceSubrange(icons, with: "\"icons\": [ \(icon) ]")
    }
    return json
  }

  static func escaped(_ text: String) -> String {
    var out = ""
    for character in text.unicodeScalars {
      switch character {
      case "&": out += "&amp;"
      case "<": out += "&lt;"
      case ">": out += "&gt;"
      case "\"": out += "&quot;"
      case "'": out += "&#39;"
      default: out.unicodeScalars.append(character)
      }
    }
    return out
  }

  /// A JSON string; the name has no control characters.
  private static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"") + "\""
  }
}
