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

  private(set) var configuration: Configuration
  let random: RandomSource
  var sessions: SessionTable
  var calls = PhoneCallTable()
  var test = ClientTestCall()
  var requests = OpenRequests()
  private(set) var microphone = MicrophonePermission.granted
  var login = Login()
  var registration = PushRegistration()
  var directory = FollowedDirectory()
  var audio = AudioSession()

  public init(_ configuration: Configuration, random: RandomSource) {
    (self.configuration, self.random) = (configuration, random)
    sessions = SessionTable(configuration, random: random)
  }

  public var nextDeadline: Instant? {
    [sessions.nextDeadline, audio.startsAt, login.dueAt, directory.retryAt, test.deadline, calls.nextDeadline]
      .compactMap(\.self).min()
  }
  /// Calls that have not ended, in a fixed order: the same events cause the same actions.
  public var liveCalls: [Identifier] { calls.live }
  /// The address for the socket; nil: the phone's own gateway.
  public var gateway: String? { sessions.gateway(of: SessionTable.own) }
  /// The address for the socket of the further session with this number.
  public func gateway(of number: Int) -> String? { sessions.gateway(of: number) }
  public func info(of call: Identifier) -> CallInfo? { calls.info(of: call) }

  public mutating func handle(_ input: Input, at now: Instant, into out: inout [Action]) {
    handleNow(input, now, &out)
    closeFurther(now, &out)
  }

  private mutating func handleNow(_ input: Input, _ now: Instant, _ out: inout [Action]) {
    switch input {
    case .pushed(let push, let mustReport): pushed(push, mustReport, now, &out)
    case .reported(let id, let refusal): reported(id, refusal, now, &out)
    case .perform(let action, let request, let timeout): perform(action, request, timeout: timeout, now, &out)
    case .timedOut(let action, let request): timedOut(action, request, now, &out)
    case .requestRefused(let request): requestRefused(request, now, &out)
    case .audioActivated: audio.activated(at: now, &out)
    case .audioDeactivated: audio.deactivated(&out)
    case .audioChanged(let isReset): audio.changed(isReset: isReset, &out)
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
    case .tokenFailed: login.tokenFailed(at: now)
    case .pushToken(let token):
      registration.set(token)
      register(now, &out)
    case .preferences(let wanted):
      registration.set(wanted)
      register(now, &out)
    case .dial(let id, let to, let options): dial(id, to: to, options: options, now, &out)
    case .act(let id, let action): act(action, id, now, &out)
    case .logOut: logOut(now, &out)
    case .followDirectory(let have, let of): follow(have: have, of: of, now, &out)
    case .read(let number, let message):
      guard isRegistrable(), let id = ask(message, call: nil, now, &out) else { return out.append(.read(number, nil)) }
      requests.add(id, .read(number))
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
    if sessions.isDue(SessionTable.own, at: now) { give(.timer, now, &out) }
    for number in sessions.furtherNumbers where sessions.isDue(number, at: now) { give(.timer, to: number, now, &out) }
    if isDue(audio.startsAt) { audio.startDue(at: now, &out) }
    if isDue(login.dueAt) { askForToken(now, &out) }
    if isDue(directory.retryAt) { directoryRetryDue(now, &out) }
    if isDue(test.deadline) { giveTest(.hangUp(), now, &out) }
    for id in calls.all {
      guard let call = calls[id], !call.isOver else { continue }
      if isDue(call.link.deadline) {
        calls[id]?.giveUp()
        ended(id, .failed, now, &out)
      }
      if isDue(call.answering.deadline) { answerTooLate(id, now, &out) }
      if isDue(call.mute.dueAt) { sendMute(id, now, &out) }
    }
  }
}
