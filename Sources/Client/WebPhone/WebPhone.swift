import WebClient

/// The web phone's files, embedded in the binary: the page, and the browser client's package (`WebClient`) that it stands on.
public enum WebPhone {
  public struct Asset: Sendable {
    public let path: String
    public let contentType: String
    public let bytes: [UInt8]
  }

  /// Where the service worker is served: what it may control lies below it.
  public static let serviceWorker = "/service-worker.js"

  /// Every file with the path it is served at.
  public static let assets: [Asset] =
    [
      Asset(path: "/", contentType: "text/html; charset=utf-8", bytes: PackageResources.index_html),
      Asset(path: "/phone.css", contentType: "text/css; charset=utf-8", bytes: PackageResources.phone_css),
      script("/start.js", PackageResources.start_js), script("/phone.js", PackageResources.phone_js),
      script("/page.js", PackageResources.page_js),
      script("/calls.js", PackageResources.calls_js), script("/cards.js", PackageResources.cards_js),
      script("/dialer.js", PackageResources.dialer_js), script("/settings.js", PackageResources.settings_js),
      script("/push.js", PackageResources.push_js), script("/words.js", PackageResources.words_js),
      script("/bell.js", PackageResources.bell_js), script("/history.js", PackageResources.history_js),
      script("/meters.js", PackageResources.meters_js),
      Asset(
        path: "/manifest.webmanifest", contentType: "application/manifest+json",
        bytes: PackageResources.manifest_webmanifest),
      Asset(path: "/icon.svg", contentType: "image/svg+xml", bytes: PackageResources.icon_svg),
      Asset(path: "/icon-192.png", contentType: "image/png", bytes: PackageResources.icon_192_png),
      Asset(path: "/icon-512.png", contentType: "image/png", bytes: PackageResources.icon_512_png),
    ] + WebClient.scripts.map { script($0.path, $0.bytes) }

  private static func script(_ path: String, _ bytes: [UInt8]) -> Asset {
    Asset(path: path, contentType: "text/javascript; charset=utf-8", bytes: bytes)
  }
}
