public import HTTP

/// Everything that an HTTP API answers, one row per operation. Dispatch, scopes, limits of bodies, and the answer to a request
/// without a row come from it. A path without a row has no page.
///
/// | target | answer |
/// |---|---|
/// | fits a row's path and method | the row's |
/// | fits a row's path, with another method | 405, `Allow` |
/// | has an empty segment, `.` or `..` in any spelling, or an encoded `/` where no row has an argument | 400 |
/// | spells a word of a row in another way (`/%761/calls`) | 400 |
/// | anything else | 404 |
public struct RouteTable<Scope: Sendable & Equatable>: Sendable {
  public typealias Sink = @Sendable (RequestHead) -> any BodySink
  public typealias Handler = @Sendable (HTTPRequest, @escaping HTTPRequest.Answer) -> Void
  public struct Row: Sendable {
    public let route: Route<Scope>
    public let handler: Handler
    /// The reader of a long body.
    public let sink: Sink?
    public init(_ route: Route<Scope>, sink: Sink? = nil, _ handler: @escaping Handler) {
      (self.route, self.sink, self.handler) = (route, sink, handler)
    }
  }
  public enum Match {
    case row(Row, arguments: [String: String])
    case refused(HTTPResponse)
  }

  public let rows: [Row]
  public init(_ rows: [Row]) { self.rows = rows }

  public func match(_ method: String, _ target: RequestTarget) -> Match {
    var methods: [String] = []
    for row in rows {
      guard let arguments = row.route.arguments(of: target.segments) else { continue }
      if row.route.methods.contains(method) { return .row(row, arguments: arguments) }
      methods += row.route.methods
    }
    guard methods.isEmpty else {
      let allow = methods.joined(separator: ", ")
      var response = HTTPProblem(.badMethod, "this path allows \(allow)").response
      response.headers.append(("Allow", allow))
      return .refused(response)
    }
    return .refused(refusal(of: target.segments).response)
  }

  /// The error for a path that fits no row.
  private func refusal(of segments: [RequestTarget.Segment]) -> HTTPProblem {
    if segments.contains(where: \.isRelative) {
      return HTTPProblem(.badRequest, "the path has an empty segment, . or ..")
    }
    let isSpelled = rows.contains { row in
      let parts = row.route.parts
      return parts.count == segments.count
        && zip(parts, segments).allSatisfy { if case .word(let word) = $0 { $1.text == word } else { true } }
    }
    if isSpelled || segments.contains(where: { $0.text.contains("/") }) {
      return HTTPProblem(.badRequest, "the fixed part of a path has a percent-encoded character")
    }
    var known: [String] = []
    for row in rows where known.last != row.route.path { known.append(row.route.path) }
    return HTTPProblem(.unknownPage, "no such page: " + known.joined(separator: " "))
  }
}
