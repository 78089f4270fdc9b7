/// A source and destination of a call's audio, as a choice for the user.
public struct AudioRoute: Sendable, Hashable, Identifiable {
  /// The type of the device, for example for an icon.
  public enum Kind: String, Sendable, CaseIterable {
    /// At the ear.
    case receiver
    /// The built-in loudspeaker.
    case speaker
    /// A headset with a cable.
    case headset
    /// A headset without a cable.
    case bluetooth
    /// A car, by CarPlay.
    case carPlay
    /// Any other type.
    case other
  }
  /// The system's identifier; it is the same when the device reconnects.
  public let id: String
  /// The type of the device.
  public let kind: Kind
  /// The name for the user, in the system's language.
  public let name: String
  /// Made by an implementation of `AudioRoutes`.
  public init(id: String, kind: Kind, name: String) { (self.id, self.kind, self.name) = (id, kind, name) }
}

/// The available routes, and the current one.
public struct AudioRouteList: Sendable, Hashable {
  /// The routes that may be chosen.
  public var available: [AudioRoute]
  /// The route that audio uses, or would use.
  public var current: AudioRoute?
  /// An input is available.
  public var hasMicrophone: Bool
  /// Made by an implementation of `AudioRoutes`.
  public init(available: [AudioRoute], current: AudioRoute?, hasMicrophone: Bool = true) {
    (self.available, self.current, self.hasMicrophone) = (available, current, hasMicrophone)
  }
}

/// The system's audio routes. `SessionRoutes` of `TrunklineCallKit` has those of AVAudioSession; elsewhere the app's audio device
/// provides them.
public protocol AudioRoutes: Sendable {
  /// Reports the routes, now and after each change, from any thread, until ``stop()``.
  func start(_ changed: @escaping @Sendable (AudioRouteList) -> Void)
  /// Audio uses this route from now on; nil: the system's choice. A report follows unless the system ignores it.
  func use(_ route: AudioRoute?)
  /// Ends the reports.
  func stop()
}
