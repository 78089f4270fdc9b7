import WebServer

/// One file of the web phone.
public struct Page: Sendable {
  public var contentType: String
  public var bytes: [UInt8]
  /// Sources of a content security policy (`wss://gateway.example`) that its scripts may connect to besides the page's own
  /// server.
  public var connects: [String]
  public init(contentType: String, bytes: [UInt8], connects: [String] = []) {
    (self.contentType, self.bytes, self.connects) = (contentType, bytes, connects)
  }
}

/// Files by path, and the headers that restrict a page to its own scripts and its own gateway.
struct StaticPages: Sendable {
  var pages: [String: Page]
  var isSecure: Bool

  /// - Parameter connects: sources besides the page's own: the nodes of a cluster.
  func answer(_ request: HTTPRequest, connects: [String] = []) -> HTTPResponse {
    guard request.method == "GET" || request.method == "HEAD" else { return .text(405, "GET only") }
    guard let page = pages[request.path] else { return .text(404, "no such page") }
    var headers: [(name: String, value: String)] = [
      ("content-security-policy", policy(request.host, page.connects + connects.filter { !page.connects.contains($0) })),
      ("permissions-policy", "microphone=(self)"),
      ("cache-control", "no-cache"),
      ("cross-origin-opener-policy", "same-origin"),
    ]
    // Pages of other origins may load trunkline.js, too, and connect if auth.origins lists them; the file contains no secret.
    if page.contentType.hasPrefix("text/javascript") {
      headers += [("access-control-allow-origin", "*"), ("cross-origin-resource-policy", "cross-origin")]
    }
    if isSecure { headers.append(("strict-transport-security", "max-age=31536000")) }
    return HTTPResponse(200, contentType: page.contentType, headers: headers, body: page.bytes)
  }

  /// Some browsers do not read `'self'` as covering the WebSocket of the page's origin, so that is named too.
  private func policy(_ host: String, _ others: [String]) -> String {
    let legal =
      !host.isEmpty
      && host.utf8.allSatisfy { (48...58).contains($0) || (97...122).contains($0 | 32) || ".-[]".utf8.contains($0) }
    let socket = legal ? " \(isSecure ? "wss" : "ws")://\(host)" : ""
    let connects = (["'self'" + socket] + others).joined(separator: " ")
    return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
      + "manifest-src 'self'; worker-src 'self'; connect-src \(connects); frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
  }
}
