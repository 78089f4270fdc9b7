/// The web phone's files, embedded in the binary: `trunkline.js` is the browser client library, the rest is the page.
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
    Asset(path: "/phone.js", contentType: "text/javascript; charset=utf-8", bytes: PackageResources.phone_js),
    Asset(path: "/trunkline.js", contentType: "text/javascript; charset=utf-8", bytes: PackageResources.trunkline_js),
  ]
}
