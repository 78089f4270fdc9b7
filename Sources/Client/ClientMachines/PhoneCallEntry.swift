import TrunklineAppProtocol
import TrunklineBytes

extension PhoneMachine {
  /// A switch that the app sets and the system performs. A change by the app while a request is open is requested afterwards; an
  /// action of the system is performed and causes no request.
  struct Switch: Sendable {
    private(set) var isOn = false
    private var wanted = false
    private var asked: Bool?
    /// A request is open: the system has yet to perform it.
    var isAsked: Bool { asked != nil }

    /// The request to send to the system, if any.
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
    /// The action is done, or has failed; returns the next request to send, if any.
    mutating func finish(_ on: Bool, isDone: Bool) -> Bool? {
      if isDone { isOn = on } else if wanted == on { wanted = isOn }
      return ask()
    }
    mutating func refused() { (asked, wanted) = (nil, isOn) }
  }

  /// A call as the phone knows it, even before and after the gateway knows it.
  struct Entry: Sendable {
    enum Screen {
      /// A push that need not be reported, before the gateway has confirmed that the call exists.
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
    /// The call's push, whose token rejects it without a session.
    var push: Push?
    var pushedAt: Instant?
    /// The session that the call belongs to: 0 is the phone's own, others are at further nodes.
    var socket = 0
    /// The node of the call, if known.
    var node: String?
    /// No session is at the call's node: the call ends by that node's message at another node's session, by its media, or after a
    /// silence.
    var hasNoSession = false
    var reportedAt: Instant?
    /// The offer, until the call is on the screen and `call.ringing` can be sent.
    var offer: (sdp: String, generation: Int)?
    /// The tap, and the action that is completed when the call is connected.
    var tappedAt: Instant?
    var open: SystemActionID?
    /// The call ends without a message from the gateway by then.
    var watchdog: Instant?
    /// The phone's own deadline, before the system's, so that the end has its reason.
    var answerBy: Instant?
    var isConfigured = false
    var hold = Switch()
    var mute = Switch()
    var muteDue: Instant?
    var isHeldByPeer = false
    var capabilities: CallCapabilities?
    /// Calls with the same number are one group.
    var group: Int?
    /// The outgoing call was reported to the screen as connecting.
    var isConnecting = false
    var connectedAt: Int64?
    var quality: Quality?
    var refusal: ErrorCode?
    var lacksMicrophone = false
    var reason: EndReason?
    /// The reason to report to the screen when its open report is answered.
    var ending: CallEndedReason?
    /// Media has restarted once for the call; a second failure is final.
    var hasRestarted = false
    /// The call lost its path while its session was offline; media restarts when it is online.
    var restartsOnline = false
    /// The gateway has been silent for so long that media restarts.
    var isReconnecting = false
    /// The call rings while its session is disconnected; `watchdog` ends it.
    var ringsAlone = false
    /// The snapshot lacks the call; `call.gone` may still give the reason.
    var isMissing = false
    var isOver = false
    /// No message about the call came in time: should one come later, this device rejects, and others continue to ring.
    var isGivenUp = false

    init(isOutgoing: Bool, peer: Handle, options: CallOptions = CallOptions(), screen: Screen) {
      (self.isOutgoing, self.peer, self.options, self.screen) = (isOutgoing, peer, options, screen)
    }

    /// False for a wake that no screen shows and whose node has not offered the call: that node may be dead, so it blocks no
    /// other caller.
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
