#if os(iOS) || APPLE_SURFACE
  import AVFAudio
  public import ClientMachines
  public import Foundation

  /// What UIKit and AVFAudio say of the app, without UIKit: an extension has none.
  public enum AppLife {
    /// No VoIP push comes to the simulator, and CallKit shows nothing there (CFG-7).
    public static var isSimulator: Bool {
      #if targetEnvironment(simulator)
        true
      #else
        false
      #endif
    }

    /// The app comes to the front, or goes to the background. The returned objects end it when they are removed from the notification center.
    @discardableResult
    public static func onForeground(_ body: @escaping @Sendable (Bool) -> Void) -> [any NSObjectProtocol] {
      let names = [("UIApplicationDidBecomeActiveNotification", true), ("UIApplicationDidEnterBackgroundNotification", false)]
      return names.map { name, isOn in
        NotificationCenter.default.addObserver(forName: Notification.Name(name), object: nil, queue: nil) { _ in body(isOn) }
      }
    }

    /// What the user has said about the microphone.
    public static var microphone: MicrophonePermission {
      switch AVAudioApplication.shared.recordPermission {
      case .granted: .granted
      case .denied: .denied
      default: .undetermined
      }
    }

    /// Asks while the app is open; later calls give what was said then.
    public static func askForMicrophone() async -> MicrophonePermission {
      await AVAudioApplication.requestRecordPermission() ? .granted : .denied
    }
  }
#endif
