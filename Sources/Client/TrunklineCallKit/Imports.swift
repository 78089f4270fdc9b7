// Apple's frameworks where they are, the stand-in elsewhere: one source over both. An app that imports this module has the SDK whole.
@_exported public import TrunklineClient

#if os(iOS)
  @_exported public import AVFAudio
  @_exported public import CallKit
  @_exported public import Intents
  @_exported public import PushKit
  import Foundation
#else
  @_exported public import AppleStandIn
#endif

/// What UIKit says of the process, without UIKit: an extension has none.
enum Application {
  /// The app comes to the front, or goes to the background.
  static func onForeground(_ body: @escaping @Sendable (Bool) -> Void) {
    #if os(iOS)
      let names = [("UIApplicationDidBecomeActiveNotification", true), ("UIApplicationDidEnterBackgroundNotification", false)]
      for (name, isOn) in names {
        NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in body(isOn) }
      }
    #else
      StandInApplication.onForeground(body)
    #endif
  }
}
