public import TrunklineAppProtocol
public import TrunklineBytes
public import TrunklineTURN

/// The telephone of an app: joins its session with the gateway, its calls, the system's call screen and the audio device. No
/// clock, I/O or threads: the shell passes every event in and performs each `Action`, in that order.
///
/// Invariants for any order of events: a push is reported in its own step; each action of the system is completed once; the end
/// of a call is reported once, and not if the user ended it; audio starts when the system has activated it and stops with it; the
/// microphone belongs to at most one call, or one group.
public struct PhoneMachine: Sendable {
  public struct Configuration: Sendable {
    public var device: Hello.Device
    public var capabilities: [String]
    /// False if a push has started the process.
    public var isForeground = true
    /// When the process started, if a push started it.
    public var startedAt: Instant?
    /// Without a microphone permission a call is reported as video, so that iOS unlocks and the app can request it; else the call
    /// is `call.unavailable{noPermission}`.
    public var forcesUnlock = false
    /// Simultaneous calls; a further one is busy on this device.
    public var maximumCalls = 2
    public init(device: Hello.Device, capabilities: [String] = ["media.active", "quality", "nodes"]) {
      (self.device, self.capabilities) = (device, capabilities)
    }
  }

  public struct Push: Sendable {
    public var call: Identifier
    public var caller: Handle
    public var wake: Redacted<String>
    /// The address to connect to; nil: the phone's own gateway.
    public var gateway: String?
    public var details: CallDetails
    public init(
      call: Identifier, caller: Handle, wake: String, gateway: String? = nil, details: CallDetails = CallDetails()
    ) {
      (self.call, self.caller, self.wake, self.gateway) = (call, caller, Redacted(wake), gateway)
      self.details = details
    }
  }

  /// A request of the app. If there is a call system, the system performs it, and only then it is done.
  public enum CallAction: Sendable {
    case answer, end
    case hold(Bool)
    case mute(Bool)
    case digits(String)
    case transfer(to: Handle)
    case join(Identifier)
    /// Nil: leave the group.
    case group(Identifier?)
    /// The device starts or stops translating; the system is not involved.
    case translate(CallTranslate)
  }

  public enum Input: Sendable {
    // from the system
    /// In the push delegate's step. Nil: the payload could not be read, and a call must be reported all the same.
    case pushed(Push?, mustReport: Bool)
    case reported(Identifier, ReportRefusal?)
    /// `timeout`: the time until the action's `timeoutDate`.
    case perform(SystemActionID, SystemRequest, timeout: Duration? = nil)
    case timedOut(SystemActionID, SystemRequest)
    /// A request by `Action.request` was refused.
    case requestRefused(SystemRequest)
    case audioActivated, audioDeactivated
    /// The audio hardware or its sample rate has changed; `isReset`: the configuration is lost.
    case audioChanged(isReset: Bool)
    /// The system has dropped all calls.
    case reset
    // from the device
    /// The parts of the audio device that run.
    case audioRuns(MediaActive)
    /// The device has refused a request.
    case audioFailed(AudioRequest)
    case pathChanged
    case foreground(Bool)
    case microphone(MicrophonePermission)
    // from the app
    case start
    /// `device`: the token's `dev`, the id of this installation; `expires`: its `exp`.
    case token(String, device: String? = nil, expires: Int64? = nil)
    /// There is no token now; it is requested again later.
    case tokenFailed
    case pushToken(DevicePut.Push?)
    case preferences(DevicePut.Preferences)
    case dial(Identifier, to: Handle, CallOptions = CallOptions())
    case act(Identifier, CallAction)
    case logOut
    /// From now on each new version of the user's directory is reported as `Action.directory`; `have`: the version that the app
    /// has; `of`: the directories of that version.
    case followDirectory(have: Int?, of: String?)
    /// A request that only reads; its answer is `Action.read` with the same number.
    case read(Int, ClientMessage)
    /// The test call of a preflight, which ends with `Action.tested`. Its media is reported as for any call.
    case testCall(Identifier)
    // from the gateway
    case socket(ClientSession.Input)
    /// For the session with this number at a further node.
    case further(Int, ClientSession.Input)
    // from the media of a call
    case media(Identifier, ClientCall.MediaReport)
    case statistics(Identifier, StreamStats)
    case timer
  }

  public enum Action: Sendable {
    case report(Identifier, Handle, isVideo: Bool)
    case updated(Identifier, Handle, CallCapabilities?)
    case reportEnded(Identifier, CallEndedReason)
    case reportConnecting(Identifier)
    /// `at`: the gateway's time, milliseconds since 1970.
    case reportConnected(Identifier, at: Int64?)
    case request(SystemRequest)
    case complete(SystemActionID, Bool)
    /// Connect, write or close; the resulting events are passed in as `Input.socket`.
    case socket(ClientSession.Action)
    /// The same for the session at a further node; numbers are not reused.
    case further(Int, ClientSession.Action)
    /// `POST /v1/calls/<id>/reject`: the socket is not connected yet, and may never be.
    case post(CallReject, Identifier, wake: Redacted<String>, gateway: String?)
    case media(Identifier, ClientCall.MediaRequest)
    case audio(AudioRequest)
    /// TURN servers for the media of calls, from the newest `welcome`.
    case relays([TURNServer])
    /// The call that microphone and loudspeaker belong to.
    case listen(Identifier?)
    /// Other calls of its group, which share them: the device mixes.
    case mix([Identifier])
    case needsToken
    /// The new token does not expire later than the one that it should replace: it is rejected.
    case tokenStale
    case state(PhoneState)
    case changed(CallInfo)
    /// The app's own call screen should show.
    case presentInApp(Identifier)
    case registered(ErrorCode?)
    case digit(Identifier, Character)
    case transferred(Identifier, CallTransferred)
    case loggedOut
    /// A new version of the directory with all its parts; each has the version that it changes, or none if it is the full
    /// directory.
    case directory([DirectoryPart])
    /// Nil: the phone is not online.
    case read(Int, Result<Success, Failure>?)
    /// The newest call of the history; 0: it is empty now.
    case historyChanged(Int)
    /// Sent after the media is closed.
    case tested(Identifier, TestCallOutcome)
  }

  var configuration: Configuration
  let random: RandomSource
  var token: Redacted<String>?
  /// `exp` of `token`, or of the last one.
  var tokenExpires: Int64?
  var session: ClientSession?
  /// Set while the session belongs to a push; the address is the push's.
  var wake: Push?
  /// Sessions at further nodes, each for the calls of its node (docs/reference/protocol.md, Many nodes).
  var further: [Int: Further] = [:]
  var furtherCount = 0
  /// The TURN servers of the newest `welcome`.
  var relays: [TURNServer] = []
  /// When the session was welcomed.
  var onlineAt: Instant?
  var calls: [Identifier: Entry] = [:]
  /// The gateway of the newest `welcome` makes test calls; and the active one.
  var hasTestCalls = false
  var test: ClientTestCall?
  /// Calls of a process that was killed, which a push's session may not end.
  var orphans: Set<Identifier> = []
  /// The call and request that an answer of the gateway belongs to.
  var tags: [Identifier: (call: Identifier, tag: ClientCall.RequestTag)] = [:]
  /// Requests whose answer shows that no further message about a pushed call follows.
  var probes: [Identifier: Identifier] = [:]
  var holds: [Identifier: (call: Identifier, action: SystemActionID, isOn: Bool)] = [:]
  var groups: [Identifier: (call: Identifier, other: Identifier?, action: SystemActionID)] = [:]
  var groupCount = 0
  var state = PhoneState.idle
  var isForeground: Bool
  var microphone = MicrophonePermission.granted
  var pushToken: DevicePut.Push?
  var preferences: DevicePut.Preferences?
  /// The gateway still has a push token that is no longer valid.
  var isRegistrationDropped = false
  var logOutQuestion: Identifier?
  /// Nil: the app follows no directory.
  var following: Following?
  var hasDirectory = false
  /// The newest version that the gateway has named.
  var directoryVersion = 0
  /// Requests that only read, by their number.
  var reads: [Identifier: Int] = [:]
  var registration: Identifier?
  /// The registration has changed since the request.
  var isRegistrationOld = false
  var isLoggingOut = false
  var tokenRequests = TokenRequests()
  /// A token that was sent to the gateway and is not accepted yet, and the one that it replaces.
  var refresh: (question: Identifier, token: Redacted<String>?, expires: Int64?, wake: Push?)?
  var isTokenStale = false
  /// `isActivated`: the system has activated audio. `isAudioForced`: audio was started without that.
  var isActivated = false
  var isAudioRunning = false
  var isAudioForced = false
  var isConfigured = false
  var runningAudio = MediaActive.idle
  var listening: Identifier?
  var mixing: [Identifier] = []
  var startsAudioAt: Instant?

  public init(_ configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random, isForeground) = (configuration, random, configuration.isForeground)
  }

  public var nextDeadline: Instant? {
    let sessions = [session?.nextDeadline] + further.values.flatMap { [$0.session.nextDeadline, $0.closesAt] }
    return
      (sessions + [startsAudioAt, tokenRequests.dueAt, following?.retryAt, test?.deadline] + calls.values.flatMap(\.deadlines))
      .compactMap(
        \.self
      )
      .min()
  }
  /// Calls that have not ended, in a fixed order: the same events cause the same actions.
  public var liveCalls: [Identifier] { Self.ordered(calls.filter { !$0.value.isOver }.map(\.key)) }
  static func ordered(_ ids: some Sequence<Identifier>) -> [Identifier] {
    ids.sorted { ($0.high, $0.low) < ($1.high, $1.low) }
  }
  /// The address for the socket; nil: the phone's own gateway.
  public var gateway: String? { session?.gateway }
  /// The address for the socket of the further session with this number.
  public func gateway(of number: Int) -> String? { further[number]?.session.gateway }
  public func info(of call: Identifier) -> CallInfo? { calls[call]?.info(call) }

  public mutating func handle(_ input: Input, at now: Instant, into out: inout [Action]) {
    handleNow(input, now, &out)
    closeFurther(now, &out)
  }

  private mutating func handleNow(_ input: Input, _ now: Instant, _ out: inout [Action]) {
    switch input {
    case .pushed(let push, let mustReport): pushed(push, mustReport, now, &out)
    case .reported(let id, let refusal): reported(id, refusal, now, &out)
    case .perform(let action, let request, let timeout): perform(action, request, timeout, now, &out)
    case .timedOut(let action, let request): timedOut(action, request, now, &out)
    case .requestRefused(let request): requestRefused(request, now, &out)
    case .audioActivated: activated(true, now, &out)
    case .audioDeactivated: activated(false, now, &out)
    case .audioChanged(let isReset): audioChanged(isReset: isReset, &out)
    case .reset: reset(now, &out)
    case .audioRuns(let running): audioRuns(running, now, &out)
    case .audioFailed(let order): audioFailed(order, now, &out)
    case .pathChanged: pathChanged(now, &out)
    case .foreground(let isOn): foreground(isOn, now, &out)
    case .microphone(let permission): microphone = permission
    case .start: start(now, &out)
    case .token(let token, let device, let expires):
      if let device { configuration.device.id = device }
      set(token, expires: expires, now, &out)
    case .tokenFailed: tokenRequests.failed(at: now)
    case .pushToken(let token): set(push: token, now, &out)
    case .preferences(let wanted): set(wanted, now, &out)
    case .dial(let id, let to, let options): dial(id, to, options, now, &out)
    case .act(let id, let action): act(action, id, now, &out)
    case .logOut: logOut(now, &out)
    case .followDirectory(let have, let of): follow(have: have, of: of, now, &out)
    case .read(let number, let message):
      guard isRegistrable(), let id = ask(message, call: nil, now, &out) else { return out.append(.read(number, nil)) }
      reads[id] = number
    case .testCall(let id): startTest(id, now, &out)
    case .socket(let input):
      give(input, now, &out)
      leaveInBackground(now, &out)
    case .further(let number, let input):
      give(input, to: number, now, &out)
      leaveInBackground(now, &out)
    case .media(let id, let report): mediaReport(report, id, now, &out)
    case .statistics(let id, let statistics): send(.stats(statistics), call: id, now, &out)
    case .timer: timers(now, &out)
    }
  }

  private mutating func timers(_ now: Instant, _ out: inout [Action]) {
    func isDue(_ deadline: Instant?) -> Bool { deadline.map { $0 <= now } ?? false }
    if isDue(session?.nextDeadline) { give(.timer, now, &out) }
    for number in further.keys.sorted() where isDue(further[number]?.session.nextDeadline) {
      give(.timer, to: number, now, &out)
    }
    if isDue(startsAudioAt) { runAudio(isForced: true, now, &out) }
    if isDue(tokenRequests.dueAt) { askForToken(now, &out) }
    if isDue(following?.retryAt) { directoryRetryDue(now, &out) }
    if isDue(test?.deadline) { giveTest(.hangUp(), now, &out) }
    for id in Self.ordered(calls.keys) {
      guard let entry = calls[id], !entry.isOver else { continue }
      if isDue(entry.watchdog) {
        calls[id]?.isGivenUp = !entry.isOutgoing
        if entry.hasNoSession, entry.call?.state == .connected { calls[id]?.reason = .networkLost }
        ended(id, .failed, now, &out)
      }
      if isDue(entry.answerBy) { answerTooLate(id, now, &out) }
      if isDue(entry.muteDue) { sendMute(id, now, &out) }
    }
  }
}
