import Foundation

/// Events that `UIApplication` and its delegate send to an app with calls. Handlers are called on the main queue.
///
/// ```swift
/// StandInApplication.onContinue { activity in
///   guard let intent = activity.interaction?.intent as? INStartCallIntent else { return }
///   call(intent.contacts?.first?.personHandle?.value)
/// }
/// ```
/// The events are those of the calling process: set handlers where the app starts.
public enum StandInApplication {
  #if !canImport(ObjectiveC)
    /// `application(_:continue:restorationHandler:)`: a tap in Recents (R17).
    public static func onContinue(_ body: @escaping @Sendable (NSUserActivity) -> Void) {
      onStartCall { intent in
        let activity = NSUserActivity(activityType: "INStartCallIntent")
        activity.interaction = INInteraction(intent: intent)
        body(activity)
      }
    }
  #endif

  /// The `interaction?.intent` of such an activity.
  public static func onStartCall(_ body: @escaping @Sendable (INStartCallIntent) -> Void) {
    change { $0.continued = body }
  }

  /// The app enters the foreground, or leaves it.
  public static func onForeground(_ body: @escaping @Sendable (Bool) -> Void) { change { $0.foreground = body } }

  /// R27: the system closed the process's sockets; new ones fail for the given number of seconds. A test's transport closes its
  /// own here.
  public static func onSocketsDied(_ body: @escaping @Sendable (Double) -> Void) { change { $0.socketsDied = body } }

  /// R29: the keychain can be read.
  public static var isProtectedDataAvailable: Bool {
    let process = AppProcess.current
    return process.lock.withLock { process.state.isUnlockedOnce }
  }

  /// R23: the microphone gives silence, as the user was never asked for permission.
  public static var isCaptureSilent: Bool {
    let process = AppProcess.current
    return process.lock.withLock { process.state.application.captureIsSilent }
  }

  private static func change(_ body: (inout AppProcess.Application) -> Void) {
    let process = AppProcess.current
    process.lock.withLock { body(&process.state.application) }
  }
}
