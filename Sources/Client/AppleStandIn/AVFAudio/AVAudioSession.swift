public import Foundation

/// The process's audio session. The system activates it for calls (R8); the app configures it, before it completes the action.
///
/// Each process has its own: `sharedInstance()` returns that of the calling process. It has no audio; `sampleRate` and
/// `currentRoute` are the phone's, with 0 Hz for a moment when the route changes (R28).
open class AVAudioSession: NSObject, @unchecked Sendable {  // mutable state is behind `lock`
  private struct State {
    var category = Category.soloAmbient
    var mode = Mode.default
    var options: CategoryOptions = []
    var isActive = false
    var sampleRate = 48_000.0
    var bufferDuration = 0.02
    var port = Port.builtInReceiver
    /// Accessories that are plugged in or connected.
    var accessories: [Port] = []
    var isOtherPlaying = false
  }

  private let lock = NSLock()
  private var state = State()
  private weak var process: AppProcess?

  init(_ process: AppProcess) { self.process = process }

  open class func sharedInstance() -> AVAudioSession { AppProcess.current.audioSession }

  public var category: Category { lock.withLock { state.category } }
  public var mode: Mode { lock.withLock { state.mode } }
  public var categoryOptions: CategoryOptions { lock.withLock { state.options } }
  /// Hz; 0 while the route changes.
  public var sampleRate: Double { lock.withLock { state.sampleRate } }
  /// Seconds.
  public var ioBufferDuration: TimeInterval { lock.withLock { state.bufferDuration } }
  public var isOtherAudioPlaying: Bool { lock.withLock { state.isOtherPlaying } }
  public var currentRoute: AVAudioSessionRouteDescription {
    AVAudioSessionRouteDescription(output: lock.withLock { state.port })
  }

  /// The built-in microphone, and one input of each accessory.
  public var availableInputs: [AVAudioSessionPortDescription]? {
    [AVAudioSessionPortDescription(.builtInMic)]
      + lock.withLock { state.accessories }.map { AVAudioSessionPortDescription(Self.input(of: $0)) }
  }
  static func input(of port: Port) -> Port {
    switch port {
    case .headphones: .headsetMic
    case .bluetoothHFP: port
    default: .builtInMic
    }
  }

  /// While the session is active this clears the speaker override (R20).
  open func setCategory(_ category: Category, mode: Mode, options: CategoryOptions = []) throws {
    lock.withLock { (state.category, state.mode, state.options) = (category, mode, options) }
    process?.send(.categorySet)
  }
  open func setCategory(_ category: Category, options: CategoryOptions = []) throws {
    try setCategory(category, mode: mode, options: options)
  }
  open func setMode(_ mode: Mode) throws {
    lock.withLock { state.mode = mode }
    process?.send(.categorySet)
  }

  /// An app with calls leaves this to the system (R8). Throws while a cellular call has the audio.
  open func setActive(_ active: Bool, options: SetActiveOptions = []) throws {
    if active, isOtherAudioPlaying { throw ErrorCode(.insufficientPriority) }
    lock.withLock { state.isActive = active }
    process?.send(.activatedItself(active))
  }

  open func overrideOutputAudioPort(_ portOverride: PortOverride) throws {
    // there is no override to remove
    guard portOverride == .speaker || lock.withLock({ state.port == .builtInSpeaker }) else { return }
    process?.send(.speaker(portOverride == .speaker))
  }
  /// Moves the audio to a connected accessory at once; any other input is ignored.
  open func setPreferredInput(_ inPort: AVAudioSessionPortDescription?) throws {
    let isMoved = lock.withLock {
      guard let port = state.accessories.first(where: { Self.input(of: $0) == inPort?.portType }), state.port != port else {
        return false
      }
      state.port = port
      return true
    }
    if isMoved { notify(Self.routeChangeNotification, [AVAudioSessionRouteChangeReasonKey: RouteChangeReason.override.rawValue]) }
  }
  open func setPreferredIOBufferDuration(_ duration: TimeInterval) throws { lock.withLock { state.bufferDuration = duration } }
  /// A preference that the stand-in ignores: the route decides.
  open func setPreferredSampleRate(_ sampleRate: Double) throws {}

  // MARK: for its process

  func activated(_ isOn: Bool) { lock.withLock { state.isActive = isOn } }
  func interrupted(_ isOn: Bool) {
    lock.withLock { state.isOtherPlaying = isOn }
    let type: InterruptionType = isOn ? .began : .ended
    notify(Self.interruptionNotification, [AVAudioSessionInterruptionTypeKey: type.rawValue])
  }
  func routed(_ route: SystemMachine.Route, sampleRate: Int) {
    lock.withLock {
      (state.port, state.sampleRate) = (Port(route), Double(sampleRate))
      switch route {
      // back at the ear: the accessory was unplugged
      case .receiver: state.accessories = []
      case .speaker: break
      case .headphones, .bluetooth, .bluetoothWideband:
        if !state.accessories.contains(state.port) { state.accessories.append(state.port) }
      }
    }
    notify(Self.routeChangeNotification, [AVAudioSessionRouteChangeReasonKey: RouteChangeReason.override.rawValue])
  }
  func mediaWasReset() {
    lock.withLock { state = State() }
    notify(Self.mediaServicesWereResetNotification, [:])
  }

  private func notify(_ name: Notification.Name, _ info: [String: UInt]) {
    NotificationCenter.default.post(name: name, object: self, userInfo: info)
  }
}
