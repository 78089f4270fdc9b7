public import TrunklineBytes

extension UserAgent {
  /// The effects of a `handle` call, appended in order. Owned by the caller and reused: process them, then `removeAll()`.
  public struct Output: Sendable {
    public struct Message: Sendable {
      public var bytes: [UInt8]
      public var flow: Flow
      public init(bytes: [UInt8], flow: Flow) { (self.bytes, self.flow) = (bytes, flow) }

      /// Else it is a request.
      public var isResponse: Bool { bytes.starts(with: "SIP/2.0 ".utf8) }
    }

    /// Messages to send now. A retransmission is a message like any other.
    public var messages: [Message] = []
    public var events: [Event] = []
    /// Connections whose peers have answered a challenge, or sent within a dialog that began with one: listed for each such
    /// message.
    public var authenticated: [Flow] = []
    /// Connections that accepted a request at `since` and received nothing: one that has been silent since then is no longer
    /// trusted.
    public var silent: [(flow: Flow, since: Instant)] = []
    /// Requests of legs without any answer. The consequence for the leg is a separate event.
    public var unanswered: [UnansweredRequest] = []
    /// Legs whose closing data (`orphan(of:)`) has changed since they began.
    public var changedLegs: [LegID] = []

    public init() {}

    /// Empties the lists and keeps their storage.
    public mutating func removeAll() {
      messages.removeAll(keepingCapacity: true)
      events.removeAll(keepingCapacity: true)
      authenticated.removeAll(keepingCapacity: true)
      silent.removeAll(keepingCapacity: true)
      changedLegs.removeAll(keepingCapacity: true)
      unanswered.removeAll(keepingCapacity: true)
    }
  }
}
