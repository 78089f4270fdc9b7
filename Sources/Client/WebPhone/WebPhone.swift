import WebClient

/// The web phone's files, embedded in the binary: the page, and the browser client's package (`WebClient`) that it stands on.
public enum WebPhone {
  public struct Asset: Sendable {
    public let path: String
    public let contentType: String
    public let bytes: [UInt8]
  }

  /// Every file with the path it is served at.
  public static let assets: [Asset] = [
    Asset(path: "/", contentType: "text/html; charset=utf-8", bytes: PackageResources.index_html),
    Asset(path: "/phone.css", contentType: "text/css; charset=utf-8", bytes: PackageResources.phone_css),
    script("phone.js", PackageResources.phone_js),
    script("words.js", PackageResources.words_js),
    script("bell.js", PackageResources.bell_js),
    script("history.js", PackageResources.history_js),
    script("meters.js", PackageResources.meters_js),
  ] + WebClient.scripts.map { Asset(path: $0.path, contentType: scriptType, bytes: $0.bytes) }

  private static let scriptType = "text/javascript; charset=utf-8"

  private static func script(_ name: String, _ bytes: [UInt8]) -> Asset {
    Asset(path: "/" + name, contentType: scriptType, bytes: bytes)
  }
}
