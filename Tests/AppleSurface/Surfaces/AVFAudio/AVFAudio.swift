// What the SDK uses of AVFAudio. AVAudioSession and its values are AppleStandIn's.
@_exported public import AppleStandIn
public import Foundation

/// AVFAudio/AVAudioApplication.h, iOS 17
open class AVAudioApplication: NSObject, @unchecked Sendable {
  public enum recordPermission: Int, Sendable { case undetermined = 0x756e_6474, denied = 0x6465_6e79, granted = 0x6772_6e74 }
  public static let shared = AVAudioApplication()
  public var recordPermission: recordPermission { .undetermined }
  public class func requestRecordPermission() async -> Bool { false }
}
