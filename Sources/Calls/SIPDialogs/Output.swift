public import Bytes

extension UserAgent {
  /// What a `handle` call caused, appended in order. Owned by the caller and reused: take what is there, then `removeAll()`.
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
    /// Connections whose peers have answered a challenge, or spoke within a dialog that has begun with one: told with each such message.
    public var authenticated: [Flow] = []
    /// Connections that took a request `since` when nothing was heard: one that has been silent since then is believed no more.
    public var silent: [(flow: Flow, since: Instant)] = []
    /// Requests of legs that had no answer at all. What it means for the leg is an event of its own.
    public var unanswered: [UnansweredRequest] = []
    /// Legs that are closed otherwise now (`orphan(of:)`) than when they began.
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
