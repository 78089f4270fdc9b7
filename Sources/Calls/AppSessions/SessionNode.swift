/// Another node that may live, as control sees it. Also one whose lease is missing, until a node has found it dead.
public struct SessionNode: Hashable, Sendable {
  /// `n2.1790000000000`.
  public var incarnation: String
  /// `wss://…/v1/connect`. A text that is not such an address is never sent to a client.
  public var url: String
  /// Sessions may be sent there: its lease lives, and it neither drains nor refuses.
  public var isOpen: Bool
  public var sessions: Int
  public init(_ incarnation: String, url: String, isOpen: Bool = true, sessions: Int = 0) {
    (self.incarnation, self.url, self.isOpen, self.sessions) = (incarnation, url, isOpen, sessions)
  }
}
