public import Foundation

public let AVAudioSessionInterruptionTypeKey = "AVAudioSessionInterruptionTypeKey"
public let AVAudioSessionRouteChangeReasonKey = "AVAudioSessionRouteChangeReasonKey"

/// Values of the session that apps with calls use; raw values are Apple's.
extension AVAudioSession {
  public struct Category: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let ambient = Category(rawValue: "AVAudioSessionCategoryAmbient")
    public static let soloAmbient = Category(rawValue: "AVAudioSessionCategorySoloAmbient")
    public static let playback = Category(rawValue: "AVAudioSessionCategoryPlayback")
    public static let record = Category(rawValue: "AVAudioSessionCategoryRecord")
    public static let playAndRecord = Category(rawValue: "AVAudioSessionCategoryPlayAndRecord")
  }

  public struct Mode: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let `default` = Mode(rawValue: "AVAudioSessionModeDefault")
    public static let voiceChat = Mode(rawValue: "AVAudioSessionModeVoiceChat")
    public static let videoChat = Mode(rawValue: "AVAudioSessionModeVideoChat")
  }

  public struct CategoryOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let mixWithOthers = CategoryOptions(rawValue: 0x1)
    public static let duckOthers = CategoryOptions(rawValue: 0x2)
    public static let allowBluetoothHFP = CategoryOptions(rawValue: 0x4)
    public static let defaultToSpeaker = CategoryOptions(rawValue: 0x8)
    public static let allowBluetoothA2DP = CategoryOptions(rawValue: 0x20)
    public static let allowAirPlay = CategoryOptions(rawValue: 0x40)
  }

  public struct SetActiveOptions: OptionSet, Sendable {
    public let rawValue: UInt
    public init(rawValue: UInt) { self.rawValue = rawValue }

    public static let notifyOthersOnDeactivation = SetActiveOptions(rawValue: 1)
  }

  public enum PortOverride: UInt, Sendable { case none = 0, speaker = 0x73_70_6b_72 }
  public enum InterruptionType: UInt, Sendable { case ended = 0, began }
  public enum RouteChangeReason: UInt, Sendable {
    case unknown = 0, newDeviceAvailable, oldDeviceUnavailable, categoryChange, override
  }

  public struct Port: RawRepresentable, Hashable, Sendable {
    public let rawValue: String
    public init(rawValue: String) { self.rawValue = rawValue }

    public static let builtInReceiver = Port(rawValue: "Receiver")
    public static let builtInSpeaker = Port(rawValue: "Speaker")
    public static let builtInMic = Port(rawValue: "MicrophoneBuiltIn")
    public static let headphones = Port(rawValue: "Headphones")
    public static let bluetoothHFP = Port(rawValue: "BluetoothHFP")
    public static let bluetoothA2DP = Port(rawValue: "BluetoothA2DPOutput")
    public static let bluetoothLE = Port(rawValue: "BluetoothLE")
    public static let headsetMic = Port(rawValue: "MicrophoneWired")
    public static let usbAudio = Port(rawValue: "USBAudio")
    public static let carAudio = Port(rawValue: "CarAudio")

    init(_ route: SystemMachine.Route) {
      self =
        switch route {
        case .receiver: .builtInReceiver
        case .speaker: .builtInSpeaker
        case .headphones: .headphones
        case .bluetooth, .bluetoothWideband: .bluetoothHFP
        }
    }
  }

  /// Why `setActive` failed.
  public struct ErrorCode: CustomNSError, Hashable, Sendable {
    /// Raw values are four-character codes of Core Audio.
    public enum Code: Int, Sendable { case isBusy = 560_030_580, insufficientPriority = 561_017_449 }

    public let code: Code
    public init(_ code: Code) { self.code = code }

    public static var errorDomain: String { NSOSStatusErrorDomain }
    public var errorCode: Int { code.rawValue }
    public static var insufficientPriority: Code { .insufficientPriority }
    public static var isBusy: Code { .isBusy }
  }

  public static let interruptionNotification = Notification.Name("AVAudioSessionInterruptionNotification")
  public static let routeChangeNotification = Notification.Name("AVAudioSessionRouteChangeNotification")
  public static let mediaServicesWereResetNotification = Notification.Name("AVAudioSessionMediaServicesWereResetNotification")
}

#if !canImport(ObjectiveC)
  let NSOSStatusErrorDomain = "NSOSStatusErrorDomain"
#endif
