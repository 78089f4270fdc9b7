/// Where a call's audio goes and comes from: a choice that a user is offered.
public struct AudioRoute: Sendable, Hashable, Identifiable {
  /// What it is: an app's icon follows it.
  public enum Kind: String, Sendable, CaseIterable {
    /// At the ear.
    case receiver
    /// The built-in loudspeaker.
    case speaker
    /// With a cable.
    case headset
    /// Without one.
    case bluetooth
    /// A car's, by CarPlay.
    case carPlay
    /// What the system names otherwise.
    case other
  }
  /// The system's own, and the same when the device comes back.
  public let id: String
  /// What it is.
  public let kind: Kind
  /// For the user, in the system's language.
  public let name: String
  /// What a seam tells.
  public init(id: String, kind: Kind, name: String) { (self.id, self.kind, self.name) = (id, kind, name) }
}

/// What of routes there is now.
public struct AudioRouteList: Sendable, Hashable {
  /// What may be chosen.
  public var available: [AudioRoute]
  /// Where audio goes, or would.
  public var current: AudioRoute?
  /// There is something that captures.
  public var hasMicrophone: Bool
  /// What a seam tells.
  public init(available: [AudioRoute], current: AudioRoute?, hasMicrophone: Bool = true) {
    (self.available, self.current, self.hasMicrophone) = (available, current, hasMicrophone)
  }
}

/// The system's audio routes. `SessionRoutes` of `TrunklineCallKit` has those of AVAudioSession; elsewhere the app's audio device brings its own.
public protocol AudioRoutes: Sendable {
  /// Tells what there is, now and after each change, from any thread, until ``stop()``.
  func start(_ changed: @escaping @Sendable (AudioRouteList) -> Void)
  /// Audio goes there from now on; nil: where the system has it go. A change follows, or none where the system does not do it.
  func use(_ route: AudioRoute?)
  /// No more calls.
  func stop()
}
