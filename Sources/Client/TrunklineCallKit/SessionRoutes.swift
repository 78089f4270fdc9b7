import Foundation
public import TrunklineClient

/// The routes of AVAudioSession: its inputs, the receiver and the loudspeaker. The call system sets the category; nothing is
/// activated here.
public final class SessionRoutes: AudioRoutes, @unchecked Sendable {
  // Unchecked: mutable state is behind `lock`. Apple's session may be used from any thread.
  private let session: AVAudioSession
  private let lock = NSLock()
  private var observers: [any NSObjectProtocol] = []
  private static let (receiver, speaker) = ("receiver", "speaker")

  /// The process's audio session.
  public init() { session = .sharedInstance() }

  deinit { stop() }

  /// Reports the routes, now and after each change.
  public func start(_ changed: @escaping @Sendable (AudioRouteList) -> Void) {
    stop()
    let names = [AVAudioSession.routeChangeNotification, AVAudioSession.mediaServicesWereResetNotification]
    let made = names.map { name in
      NotificationCenter.default.addObserver(forName: name, object: session, queue: nil) { [weak self] _ in
        if let self { changed(self.list) }
      }
    }
    lock.withLock { observers = made }
    changed(list)
  }

  /// Stops the reports.
  public func stop() {
    let gone = lock.withLock {
      defer { observers = [] }
      return observers
    }
    for observer in gone { NotificationCenter.default.removeObserver(observer) }
  }

  /// If the system refuses, the next report has another current route than the requested one.
  public func use(_ route: AudioRoute?) {
    let input = session.availableInputs?.first { $0.uid == route?.id }
    let builtIn = session.availableInputs?.first { $0.portType == .builtInMic }
    switch route?.id {
    case nil:
      try? session.overrideOutputAudioPort(.none)
      try? session.setPreferredInput(nil)
    case Self.speaker: try? session.overrideOutputAudioPort(.speaker)
    case Self.receiver:
      try? session.overrideOutputAudioPort(.none)
      try? session.setPreferredInput(builtIn)
    default:
      try? session.overrideOutputAudioPort(.none)
      try? session.setPreferredInput(input)
    }
  }

  private var list: AudioRouteList {
    let inputs = session.availableInputs ?? []
    let (outputs, sources) = (session.currentRoute.outputs, session.currentRoute.inputs)
    var available: [AudioRoute] = []
    if inputs.contains(where: { $0.portType == .builtInMic }) || outputs.contains(where: { $0.portType == .builtInReceiver }) {
      available.append(AudioRoute(id: Self.receiver, kind: .receiver, name: "Receiver"))
    }
    available.append(AudioRoute(id: Self.speaker, kind: .speaker, name: "Speaker"))
    for port in inputs where port.portType != .builtInMic {
      available.append(AudioRoute(id: port.uid, kind: Self.kind(port.portType), name: port.portName))
    }
    return AudioRouteList(
      available: available, current: Self.current(outputs, inputs: sources, available: &available),
      hasMicrophone: !inputs.isEmpty || !sources.isEmpty)
  }

  /// The current route by its output. An accessory is identified by its input where it has one, as only that identifier can be
  /// chosen.
  private static func current(
    _ outputs: [AVAudioSessionPortDescription], inputs: [AVAudioSessionPortDescription], available: inout [AudioRoute]
  ) -> AudioRoute? {
    guard let output = outputs.first else { return nil }
    switch output.portType {
    case .builtInReceiver: return available.first { $0.id == receiver }
    case .builtInSpeaker: return available.first { $0.id == speaker }
    default:
      let kind = kind(output.portType)
      let known = available.first { route in inputs.contains { $0.uid == route.id } && route.kind == kind }
      return known ?? available.first { $0.kind == kind } ?? AudioRoute(id: output.uid, kind: kind, name: output.portName)
    }
  }

  private static func kind(_ port: AVAudioSession.Port) -> AudioRoute.Kind {
    switch port {
    case .builtInReceiver: .receiver
    case .builtInSpeaker: .speaker
    case .headphones, .headsetMic, .usbAudio: .headset
    case .bluetoothHFP, .bluetoothA2DP, .bluetoothLE: .bluetooth
    case .carAudio: .carPlay
    default: .other
    }
  }
}
