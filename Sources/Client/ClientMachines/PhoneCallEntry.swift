import AppProtocol
import Bytes

extension PhoneMachine {
  /// A switch that the app wants and the system performs. What the app wants while a request is under way is asked for afterwards; an action
  /// of the system is obeyed and causes no request.
  struct Switch: Sendable {
    private(set) var isOn = false
    private var wanted = false
    private var asked: Bool?
    /// The system has yet to perform it.
    var isAsked: Bool { asked != nil }

    /// What to ask the system for, if anything.
    mutating func want(_ on: Bool) -> Bool? {
      wanted = on
      return ask()
    }
    private mutating func ask() -> Bool? {
      guard asked == nil, wanted != isOn else { return nil }
      asked = wanted
      return wanted
    }
    /// The system's action begins.
    mutating func begin(_ on: Bool) { if asked == on { asked = nil } else { wanted = on } }
    /// It is done, or could not be; what to ask for next, if anything.
    mutating func finish(_ on: Bool, isDone: Bool) -> Bool? {
      if isDone { isOn = on } else if wanted == on { wanted = isOn }
      return ask()
    }
    mutating func refused() { (asked, wanted) = (nil, isOn) }
  }

  /// A call as the phone knows it, before and after the gateway does.
  struct Entry: Sendable {
    enum Screen {
      /// A push that need not be reported, before the gateway has said that the call lives.
      case unreported
      case reporting, shown, refused, gone
    }
    let isOutgoing: Bool
    var peer: Handle
    var options: CallOptions
    var account: String?
    var details = CallDetails()
    var screen: Screen
    /// Nil before the gateway's offer.
    var call: ClientCall?
    /// Of its push: what rejects it without a session.
    var push: Push?
    var pushedAt: Instant?
    /// The session that it belongs to: 0 the phone's own, else one at a further node.
    var socket = 0
    /// The node that has it, as far as it was said.
    var node: String?
    /// No session is at its node: it ends by that node's word at another one's session, by its media, or when nothing is heard.
    var hasNoSession = false
    var reportedAt: Instant?
    /// What waits for the call to be on the screen: `call.ringing` says that it is.
    var offer: (sdp: String, generation: Int)?
    /// The tap, and the action that is completed when the call is connected.
    var tappedAt: Instant?
    var open: SystemActionID?
    /// No word of the gateway by then: the call ends.
    var watchdog: Instant?
    /// The phone gives up before the system does, so that the end has its reason.
    var answerBy: Instant?
    var isConfigured = false
    var hold = Switch()
    var mute = Switch()
    var muteDue: Instant?
    var isHeldByPeer = false
    var capabilities: CallCapabilities?
    /// Calls with the same number are one group.
    var group: Int?
    /// The screen was told that an outgoing call connects.
    var isConnecting = false
    var connectedAt: Int64?
    var quality: Quality?
    var refusal: ErrorCode?
    var lacksMicrophone = false
    var reason: EndReason?
    /// What the screen is told of the end, should its report still be under way.
    var ending: CallEndedReason?
    /// Media was recreated for it once; a second failure is final.
    var hasRestarted = false
    /// It lost its path while the gateway could not be asked for another.
    var restartsOnline = false
    /// Nothing has come from the gateway for so long that its media is recreated.
    var isReconnecting = false
    /// It rings while its session is broken, and `watchdog` ends that.
    var ringsAlone = false
    /// The snapshot lacks it; `call.gone` may still say why.
    var isMissing = false
    var isOver = false
    /// The gateway said nothing of it in time: should it do so after all, this device is out, and others ring on.
    var isGivenUp = false

    init(isOutgoing: Bool, peer: Handle, options: CallOptions = CallOptions(), screen: Screen) {
      (self.isOutgoing, self.peer, self.options, self.screen) = (isOutgoing, peer, options, screen)
    }

    /// A wake that no screen shows and whose node has not offered the call keeps no other caller out: that node may be dead.
    var holdsLine: Bool { isOutgoing || call != nil || screen != .unreported }

    var deadlines: [Instant?] { isOver ? [] : [watchdog, answerBy, muteDue] }

    func info(_ id: Identifier) -> CallInfo {
      let early: ClientCall.State = isOutgoing ? .starting : tappedAt == nil ? .ringing : .answering
      var info = CallInfo(id: id, isOutgoing: isOutgoing, peer: peer, state: isOver ? .ended : call?.state ?? early)
      info.details = details
      (info.account, info.capabilities, info.connectedAt) = (account, capabilities, connectedAt)
      (info.isMuted, info.isHeld, info.isHeldByPeer) = (mute.isOn, hold.isOn, isHeldByPeer)
      (info.codec, info.quality, info.refusal) = (call?.codec, quality, refusal)
      info.reason = isOver ? call?.reason ?? reason : nil
      info.lacksMicrophone = lacksMicrophone
      info.isReconnecting = !isOver && isReconnecting
      info.group = isOver ? nil : group
      return info
    }
  }
}
