public import Foundation

/// Where the audio goes. Minimal: one output, the built-in microphone or that of the headset.
open class AVAudioSessionRouteDescription: NSObject, @unchecked Sendable {  // immutable
  public let inputs: [AVAudioSessionPortDescription]
  public let outputs: [AVAudioSessionPortDescription]

  init(output: AVAudioSession.Port) {
    outputs = [AVAudioSessionPortDescription(output)]
    inputs = [AVAudioSessionPortDescription(AVAudioSession.input(of: output))]
  }
}

/// One port of a route.
open class AVAudioSessionPortDescription: NSObject, @unchecked Sendable {  // immutable
  public let portType: AVAudioSession.Port
  public var portName: String { portType.rawValue }
  public var uid: String { portType.rawValue }

  init(_ type: AVAudioSession.Port) { portType = type }
}
