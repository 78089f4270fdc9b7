import Bytes

/// One file of the web phone.
public struct Page: Sendable {
  public var contentType: String
  public var bytes: [UInt8]
  public init(contentType: String, bytes: [UInt8]) { (self.contentType, self.bytes) = (contentType, bytes) }
}

/// Files by path, and the headers that keep a page to its own scripts and its own gateway.
struct StaticPages: Sendable {
  var pages: [String: Page]
  var isSecure: Bool

  func answer(_ request: HTTPRequest) -> HTTPResponse {
    guard request.method == "GET" || request.method == "HEAD" else { return .text(405, "GET only") }
    guard let page = pages[request.path] else { return .text(404, "no such page") }
    var headers: [(name: String, value: String)] = [
      ("content-security-policy", policy(request.host)), ("permissions-policy", "microphone=(self)"),
      ("cache-control", "no-cache"),
      ("cross-origin-opener-policy", "same-origin"),
    ]
    if isSecure { headers.append(("strict-transport-security", "max-age=31536000")) }
    return HTTPResponse(200, contentType: page.contentType, headers: headers, body: page.bytes)
  }

  /// Not every browser reads `'self'` as covering the WebSocket of its own origin, so that is named too.
  private func policy(_ host: String) -> String {
    let legal =
      !host.isEmpty
      && host.utf8.allSatisfy { (48...58).contains($0) || (97...122).contains($0 | 32) || ".-[]".utf8.contains($0) }
    let socket = legal ? " \(isSecure ? "wss" : "ws")://\(host)" : ""
    return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self' blob:; "
      + "connect-src 'self'\(socket); frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
  }
}
