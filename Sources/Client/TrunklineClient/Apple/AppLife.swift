#if os(iOS) || APPLE_SURFACE
  import AVFAudio
  public import TrunklineClientMachines
  public import Foundation

  /// The app's state as UIKit and AVFAudio report it, without linking UIKit: an extension has none.
  public enum AppLife {
    /// The simulator gets no VoIP push, and CallKit shows nothing there.
    public static var isSimulator: Bool {
      #if targetEnvironment(simulator)
        true
      #else
        false
      #endif
    }

    /// Calls `body` with true when the app becomes active, with false when it enters the background. To stop, remove the returned
    /// objects from the notification center.
    @discardableResult
    public static func onForeground(_ body: @escaping @Sendable (Bool) -> Void) -> [any NSObjectProtocol] {
      let names = [("UIApplicationDidBecomeActiveNotification", true), ("UIApplicationDidEnterBackgroundNotification", false)]
      return names.map { name, isOn in
        NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in body(isOn) }
      }
    }

    /// The user's answer to the request for the microphone.
    public static var microphone: MicrophonePermission {
      switch AVAudioApplication.shared.recordPermission {
      case .granted: .granted
      case .denied: .denied
      default: .undetermined
      }
    }

    /// Asks the user while the app is open; later calls return the first answer.
    public static func askForMicrophone() async -> MicrophonePermission {
      await AVAudioApplication.requestRecordPermission() ? .granted : .denied
    }
  }
#endif
