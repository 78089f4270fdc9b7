/// A fault of a call's audio that this device measures: the user can mend it, and the gateway cannot see it.
public struct CallWarning: Hashable, Sendable {
  public enum Cause: String, Sendable, CaseIterable {
    /// 5 % of the incoming packets, or of the outgoing ones by the gateway's reports, are lost over 5 s.
    case loss
    /// The round trip to the gateway takes 400 ms for 3 s.
    case roundTrip
    /// For 5 s no packet has come from the gateway, or none has reached it.
    case oneWay
    /// No level above −50 dBov for 30 s.
    case microphoneLow
  }
  public enum Direction: String, Sendable { case incoming, outgoing }
  public var cause: Cause
  /// Set for `oneWay` only.
  public var direction: Direction?

  public init(_ cause: Cause, _ direction: Direction? = nil) { (self.cause, self.direction) = (cause, direction) }

  /// A sentence for the user, in English.
  public var text: String {
    switch (cause, direction) {
    case (.loss, _): "The network loses audio. Move closer to the Wi-Fi, or take another network."
    case (.roundTrip, _): "The way to the gateway is slow: words come late. Another network may help."
    case (.oneWay, .outgoing): "The other side does not hear you. Call again, or take another network."
    case (.oneWay, _): "Nothing is heard from the other side. Ask whether they hear you, or call again."
    case (.microphoneLow, _): "Your microphone is very quiet. Speak closer to it, or choose another one."
    }
  }
}

/// Judges a call's statistics, once a second. A warning begins after a number of bad seconds in a row and ends after a number of
/// good ones, as its row states; a second that is neither changes nothing.
public struct CallWarnings: Sendable {
  /// The call's state for its user.
  public struct Situation: Sendable {
    /// Packets should arrive; the microphone should be heard.
    public var expectsAudio: Bool
    public var sendsAudio: Bool
    public init(expectsAudio: Bool, sendsAudio: Bool) { (self.expectsAudio, self.sendsAudio) = (expectsAudio, sendsAudio) }
  }
  private struct Row: Sendable {
    let warning: CallWarning
    let after: Int
    let until: Int
    var bad = 0
    var good = 0
    var isOn = false

    mutating func judge(isBad: Bool, isGood: Bool) {
      bad = isBad ? bad + 1 : isGood ? 0 : bad
      good = isGood ? good + 1 : 0
      if bad >= after { isOn = true }
      if good >= until { isOn = false }
    }
  }

  private var loss = Row(warning: .init(.loss), after: 3, until: 5)
  private var roundTrip = Row(warning: .init(.roundTrip), after: 3, until: 5)
  private var incoming = Row(warning: .init(.oneWay, .incoming), after: 5, until: 1)
  private var outgoing = Row(warning: .init(.oneWay, .outgoing), after: 5, until: 2)
  private var microphone = Row(warning: .init(.microphoneLow), after: 30, until: 1)
  private var last: ClientMedia.Statistics?
  private var losses: [Double] = []

  public init() {}

  public var current: [CallWarning] {
    [loss, roundTrip, incoming, outgoing, microphone].filter(\.isOn).map(\.warning)
  }

  public mutating func judge(_ now: ClientMedia.Statistics, _ situation: Situation) {
    let before = last ?? now
    let (came, lost) = (
      now.receivedPackets &- min(before.receivedPackets, now.receivedPackets),
      now.lostPackets &- min(before.lostPackets, now.lostPackets)
    )
    losses = (losses + [came + lost > 0 ? Double(lost) / Double(came + lost) : 0]).suffix(5)
    let unheard = now.reportedLossFraction.map { $0 >= 0.9 } ?? false
    let share = max(losses.reduce(0, +) / Double(losses.count), unheard ? 0 : now.reportedLossFraction ?? 0)
    loss.judge(isBad: share >= 0.05, isGood: share < 0.02)
    let trip = now.roundTripMilliseconds ?? 0
    roundTrip.judge(isBad: trip >= 400, isGood: trip < 300)
    incoming.judge(isBad: situation.expectsAudio && came == 0 && last != nil, isGood: !situation.expectsAudio || came > 0)
    outgoing.judge(isBad: situation.sendsAudio && unheard, isGood: !situation.sendsAudio || !unheard)
    microphone.judge(
      isBad: situation.sendsAudio && now.microphoneLevel < -50, isGood: !situation.sendsAudio || now.microphoneLevel >= -45)
    last = now
  }
}
