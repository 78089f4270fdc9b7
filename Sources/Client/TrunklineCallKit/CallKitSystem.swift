public import Dispatch
public import Foundation
import TrunklineAppProtocol
import TrunklineBytes
import TrunklineClientMachines

/// Calls on the system's screens: CallKit, PushKit and AVAudioSession.
///
/// Its provider and its push registry exist once per process, from `attach` on, with the engine's queue as their delegate queue:
/// a delegate enters the phone in the same step, so that a push is reported before its delegate method returns.
public final class CallKitSystem: NSObject, CallSystem, @unchecked Sendable {
  // Unchecked: made on one thread, and after `attach` used on the engine's queue only.
  private let settings: Settings
  private let provider: CXProvider
  private var controller: CXCallController?
  private var registry: PKPushRegistry?
  private var queue: DispatchQueue?
  private var events: (@Sendable (CallSystemEvent) -> Void)?
  private var actions: [SystemActionID: CXAction] = [:]
  private var nextAction = 0
  private var observers: [any NSObjectProtocol] = []
  /// Sample rate in Hz of the route on which audio was last started, or would be.
  private var sampleRate = 0.0
  /// Completion of the push whose delegate is running: it waits for the report's.
  private var pushCompletion: (@Sendable () -> Void)?

  /// The appearance of calls, and the source of pushes.
  public struct Settings: Sendable {
    /// Simultaneous calls; merged calls count as one.
    public var maximumCalls = 2
    /// Calls are listed in the telephone's Recents, from where a tap calls back (``TrunklineClient/Phone/callActivity``).
    public var includesCallsInRecents = true
    /// Calls may be translated by the system, on iOS 26 and later; this needs no feature of the gateway.
    public var translates = false
    /// File name in the app's bundle.
    public var ringtone: String?
    /// Image of 40 points, used as a mask.
    public var icon: Data?
    /// The topic of pushes; nil: the bundle's identifier and `.voip`.
    public var topic: String?
    /// False for builds that Xcode installs: their tokens belong to the sandbox.
    public var isProduction = true
    /// Two simultaneous calls, listed in Recents, tokens of the production service.
    public init() {}
  }

  /// Call it on the thread that launches the app, before the first push can arrive.
  public init(_ settings: Settings = Settings()) {
    self.settings = settings
    let configuration = CXProviderConfiguration()
    configuration.maximumCallGroups = settings.maximumCalls
    configuration.maximumCallsPerCallGroup = 1
    configuration.supportsVideo = false
    // every kind that a handle can have: without it a tap in Recents does nothing
    configuration.supportedHandleTypes = [.phoneNumber, .emailAddress, .generic]
    configuration.includesCallsInRecents = settings.includesCallsInRecents
    configuration.ringtoneSound = settings.ringtone
    configuration.iconTemplateImageData = settings.icon
    if #available(iOS 26.0, macOS 26.0, *) { configuration.supportsAudioTranslation = settings.translates }
    provider = CXProvider(configuration: configuration)
    super.init()
  }

  deinit {
    provider.invalidate()
    for observer in observers { NotificationCenter.default.removeObserver(observer) }
  }

  public func attach(to queue: DispatchQueue, _ events: @escaping @Sendable (CallSystemEvent) -> Void) {
    self.queue = queue
    self.events = events
    provider.setDelegate(self, queue: queue)
    controller = CXCallController(queue: queue)
    // before the registry, so that the permission is known when a push arrives
    queue.async { [weak self] in self?.applyMicrophone() }
    Application.onForeground { [weak self] isOn in
      self?.queue?.async { [weak self] in
        if isOn { self?.applyMicrophone() }
        self?.events?(.foreground(isOn))
      }
    }
    watch(Session(value: .sharedInstance()))
    let registry = PKPushRegistry(queue: queue)
    self.registry = registry
    registry.delegate = self
    registry.desiredPushTypes = [.voIP]
  }

  /// The user may have changed the permission in the settings.
  private func applyMicrophone() {
    let permission: MicrophonePermission? = Application.microphone
    if let permission { events?(.microphone(permission)) }
  }

  /// Apple's class is not marked Sendable everywhere; this code sets nothing on it.
  private struct Session: @unchecked Sendable { let value: AVAudioSession }

  /// R28: a route may have a different rate, after a moment with none.
  private func watch(_ session: Session) {
    sampleRate = session.value.sampleRate
    func observe(_ name: Notification.Name, _ body: @escaping @Sendable (CallKitSystem, _ type: UInt?) -> Void) {
      let observer = NotificationCenter.default.addObserver(forName: name, object: session.value, queue: nil) {
        [weak self] reported in
        let type = reported.userInfo?[AVAudioSessionInterruptionTypeKey] as? UInt
        self?.queue?.async { [weak self] in if let self { body(self, type) } }
      }
      observers.append(observer)
    }
    observe(AVAudioSession.interruptionNotification) { system, type in
      let isOn = type == AVAudioSession.InterruptionType.began.rawValue
      system.events?(.noted(.interrupted(isOn)))
    }
    observe(AVAudioSession.routeChangeNotification) { system, _ in
      let rate = session.value.sampleRate
      let port = session.value.currentRoute.outputs.first?.portType.rawValue ?? ""
      system.events?(.noted(.route(Self.route(port), sampleRateHz: Int(exactly: rate.rounded()) ?? 0)))
      guard rate > 0, rate != system.sampleRate else { return }
      system.sampleRate = rate
      system.events?(.audioChanged(isReset: false))
    }
    observe(AVAudioSession.mediaServicesWereResetNotification) { system, _ in
      system.sampleRate = session.value.sampleRate
      system.events?(.audioChanged(isReset: true))
    }
  }

  /// The trace's name of a port; other ports keep Apple's.
  private static func route(_ port: String) -> String {
    switch port {
    case "Receiver": "receiver"
    case "Speaker": "speaker"
    case "Headphones": "headphones"
    case "BluetoothHFP": "bluetooth"
    default: port
    }
  }

  var configuration: CXProviderConfiguration { provider.configuration }

  // MARK: requests

  /// Passes the request to CallKit or to the audio session.
  public func perform(_ request: CallSystemRequest) {
    switch request {
    case .report(let call, let caller, let isVideo): report(call, caller, isVideo: isVideo)
    case .update(let call, let caller, let capabilities):
      let update = CXCallUpdate()
      fill(update, caller)
      update.supportsHolding = capabilities?.hold ?? false
      update.supportsDTMF = capabilities?.dtmf ?? false
      let groups = capabilities?.group ?? false
      update.supportsGrouping = groups
      update.supportsUngrouping = groups
      if groups { allowGroups() }
      provider.reportCall(with: call.uuid, updated: update)
    case .reportEnded(let call, let reason): provider.reportCall(with: call.uuid, endedAt: nil, reason: CXCallEndedReason(reason))
    case .reportConnecting(let call): provider.reportOutgoingCall(with: call.uuid, startedConnectingAt: nil)
    case .reportConnected(let call, let at):
      let date = at.map { Date(timeIntervalSince1970: Double($0) / 1_000) }
      provider.reportOutgoingCall(with: call.uuid, connectedAt: date)
    case .request(let request): ask(request)
    case .complete(let id, let isDone):
      guard let action = actions.removeValue(forKey: id) else { return }
      if isDone { action.fulfill() } else { action.fail() }
    case .configureAudio:
      // once per call, before activation; only the system activates the session
      try? AVAudioSession.sharedInstance().setCategory(
        .playAndRecord, mode: .voiceChat, options: [.allowBluetoothHFP, .allowBluetoothA2DP])
    }
  }

  /// For a gateway that mixes: CallKit may offer to merge calls.
  private func allowGroups() {
    let configuration = provider.configuration
    guard configuration.maximumCallsPerCallGroup == 1 else { return }
    configuration.maximumCallsPerCallGroup = Self.callsPerGroup
    provider.configuration = configuration
  }
  private static let callsPerGroup = 5

  private func report(_ call: Identifier, _ caller: Handle, isVideo: Bool) {
    let update = CXCallUpdate()
    fill(update, caller)
    update.hasVideo = isVideo
    update.supportsGrouping = false
    update.supportsUngrouping = false
    let completion = pushCompletion
    pushCompletion = nil
    provider.reportNewIncomingCall(with: call.uuid, update: update) { [weak self] error in
      completion?()
      let refusal = error.map { ReportRefusal($0) }
      self?.queue?.async { [weak self] in self?.events?(.reported(call, refusal)) }
    }
  }

  private func fill(_ update: CXCallUpdate, _ caller: Handle) {
    update.remoteHandle = CXHandle(caller)
    update.localizedCallerName = caller.n
  }

  private func ask(_ request: SystemRequest) {
    controller?.request(CXTransaction(action: request.action)) { [weak self] error in
      let code = error.map { ($0 as NSError).code }
      self?.queue?.async { [weak self] in
        self?.events?(.noted(.requested(request, error: code)))
        if code != nil { self?.events?(.requestRefused(request)) }
      }
    }
  }

  fileprivate func perform(_ action: CXAction, _ request: SystemRequest) {
    nextAction += 1
    let id = SystemActionID(nextAction)
    actions[id] = action
    events?(.perform(id, request, timeout: .seconds(max(0, action.timeoutDate.timeIntervalSinceNow))))
  }
}

extension CallKitSystem: CXProviderDelegate {
  /// CallKit accepts reports from here on; earlier ones have waited in it. Noted in the trace (R12).
  public func providerDidBegin(_ provider: CXProvider) { events?(.noted(.began)) }
  public func providerDidReset(_ provider: CXProvider) {
    actions = [:]
    events?(.reset)
  }
  /// Starts an outgoing call: fulfilled when the gateway has accepted it.
  public func provider(_ provider: CXProvider, perform action: CXStartCallAction) {
    perform(action, .start(Identifier(action.callUUID), Handle(action.handle)))
  }
  /// The user answers: fulfilled when the call is connected, so that an answered call has audio.
  public func provider(_ provider: CXProvider, perform action: CXAnswerCallAction) {
    perform(action, .answer(Identifier(action.callUUID)))
  }
  /// The user ends or declines: fulfilled at once.
  public func provider(_ provider: CXProvider, perform action: CXEndCallAction) {
    perform(action, .end(Identifier(action.callUUID)))
  }
  /// Hold or resume, by the user, the app or a second call.
  public func provider(_ provider: CXProvider, perform action: CXSetHeldCallAction) {
    perform(action, .hold(Identifier(action.callUUID), action.isOnHold))
  }
  /// Mute or unmute; iOS also sends them in bursts, of which the last counts.
  public func provider(_ provider: CXProvider, perform action: CXSetMutedCallAction) {
    perform(action, .mute(Identifier(action.callUUID), action.isMuted))
  }
  /// Keys of the system's keypad.
  public func provider(_ provider: CXProvider, perform action: CXPlayDTMFCallAction) {
    perform(action, .digits(Identifier(action.callUUID), action.digits))
  }
  /// Calls are merged, or one leaves: fulfilled when the gateway has done so.
  public func provider(_ provider: CXProvider, perform action: CXSetGroupCallAction) {
    perform(action, .group(Identifier(action.callUUID), action.callUUIDToGroupWith.map { Identifier($0) }))
  }
  /// The system's engine processes received and captured audio; a mute meanwhile silences only our microphone's samples, as
  /// always. The gateway is notified, so that it does not silence the translation.
  @available(iOS 26.0, macOS 26.0, *)
  public func provider(_ provider: CXProvider, perform action: CXSetTranslatingCallAction) {
    guard settings.translates else { return action.fail() }
    let (local, remote) = (action.localLanguage, action.remoteLanguage)
    events?(
      .translates(
        Identifier(action.callUUID),
        CallTranslate(
          on: action.isTranslating, local: local.isEmpty ? nil : local, remote: remote.isEmpty ? nil : remote, engine: .default)))
    action.fulfill(using: .default)
  }

  public func provider(_ provider: CXProvider, timedOutPerforming action: CXAction) {
    guard let (id, _) = actions.first(where: { $0.value.uuid == action.uuid }), let request = SystemRequest(action) else {
      return
    }
    actions[id] = nil
    events?(.timedOut(id, request))
  }
  /// Audio runs from here on, and not before.
  public func provider(_ provider: CXProvider, didActivate audioSession: AVAudioSession) { events?(.audioActivated) }
  /// Audio stops.
  public func provider(_ provider: CXProvider, didDeactivate audioSession: AVAudioSession) { events?(.audioDeactivated) }
}

extension CallKitSystem: PKPushRegistryDelegate {
  /// A new push token: the gateway is notified at once, or with the next login.
  public func pushRegistry(_ registry: PKPushRegistry, didUpdate pushCredentials: PKPushCredentials, for type: PKPushType) {
    guard type == .voIP else { return }
    let token = pushCredentials.token.map { byte in (byte < 16 ? "0" : "") + String(byte, radix: 16) }.joined()
    let topic = settings.topic ?? Bundle.main.bundleIdentifier.map { $0 + ".voip" }
    events?(.pushToken(.init(kind: .apnsVoIP, token: token, env: settings.isProduction ? "production" : "sandbox", topic: topic)))
  }

  /// The token is no longer valid: the gateway removes it.
  public func pushRegistry(_ registry: PKPushRegistry, didInvalidatePushTokenFor type: PKPushType) {
    if type == .voIP { events?(.pushToken(nil)) }
  }

  /// iOS before 26.4: each push must be reported.
  public func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingPushWith payload: PKPushPayload, for type: PKPushType,
    completion: @escaping @Sendable () -> Void
  ) { received(payload, type, mustReport: true, completion) }

  /// iOS 26.4 and later: `metadata.mustReport` states whether the push must be reported; if not, it is reported once the gateway
  /// confirms the call.
  @available(iOS 26.4, *)
  public func pushRegistry(
    _ registry: PKPushRegistry, didReceiveIncomingVoIPPushWith payload: PKPushPayload, metadata: PKVoIPPushMetadata,
    withCompletionHandler completion: @escaping @Sendable () -> Void
  ) { received(payload, payload.type, mustReport: metadata.mustReport, completion) }

  /// Reports the call before anything else; the completion follows the report's callback, or is called at once if no call is
  /// reported.
  private func received(
    _ payload: PKPushPayload, _ type: PKPushType, mustReport: Bool, _ completion: @escaping @Sendable () -> Void
  ) {
    guard type == .voIP else { return completion() }
    pushCompletion = completion
    let fields = payload.dictionaryPayload.reduce(into: [String: Any]()) { fields, field in
      if let key = field.key as? String { fields[key] = field.value }
    }
    let json = JSONSerialization.isValidJSONObject(fields) ? try? JSONSerialization.data(withJSONObject: fields) : nil
    events?(.pushed(payload: [UInt8](json ?? Data()), mustReport: mustReport))
    pushCompletion?()
    pushCompletion = nil
  }
}
