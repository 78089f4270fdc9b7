import JSONWebToken

/// This node's identity among nodes that share a key (docs/design/app-protocol.md, Many nodes). Immutable; any thread.
public struct SessionCluster: Sendable {
  /// `n1.1790000000000`: name and start of this process. No two processes have the same.
  public let incarnation: String
  /// The address of this node alone: `wss://…/v1/connect`.
  public let url: String
  /// For `SessionSettings.wakeTokens` and for the sender of pushes.
  public let wakeTokens: WakeTokens
  let resumeTokens: ResumeTokens

  /// Nil: the key is empty, or `incarnation` is malformed.
  /// - Parameter key: the same at all nodes, 32 bytes or more. Both kinds of tokens have keys derived from it.
  public init?(incarnation: String, url: String, key: [UInt8]) {
    guard incarnation.utf8.count <= Limits.incarnationBytes, Self.start(of: incarnation) != nil,
      let wakes = WakeTokens(clusterKey: key, incarnation: incarnation),
      let resumes = ResumeTokens(clusterKey: key, incarnation: incarnation)
    else { return nil }
    (self.incarnation, self.url) = (incarnation, url)
    (wakeTokens, resumeTokens) = (wakes, resumes)
  }

  /// `welcome.node`.
  var node: String { String(Self.name(of: incarnation)) }

  /// `n1`; a name may contain dots.
  static func name(of incarnation: String) -> Substring {
    incarnation.lastIndex(of: ".").map { incarnation[..<$0] } ?? incarnation[...]
  }

  /// Milliseconds since 1970, by that node's clock.
  static func start(of incarnation: String) -> Int64? {
    incarnation.lastIndex(of: ".").flatMap { Int64(incarnation[incarnation.index(after: $0)...]) }
  }
}
