/// Response fields for pages of other origins (the Fetch standard, "CORS protocol").
extension HTTPResponse {
  /// The answer to a browser's preflight: this origin may send a POST with credentials and a body of JSON.
  public static func preflight(for origin: String) -> HTTPResponse {
    var answer = HTTPResponse(200, contentType: "text/plain; charset=utf-8", body: []).readable(by: origin)
    answer.headers += [
      ("Access-Control-Allow-Methods", "POST"), ("Access-Control-Allow-Headers", "authorization, content-type"),
      ("Access-Control-Max-Age", "\(Limits.preflightSeconds)"),
    ]
    return answer
  }

  /// A page of this origin may read it.
  public func readable(by origin: String) -> HTTPResponse {
    var answer = self
    answer.headers += [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")]
    return answer
  }
}
