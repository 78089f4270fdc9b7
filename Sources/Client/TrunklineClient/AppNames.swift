public import AppProtocol
public import ClientMachines

// What an app reads of a call and says to the phone, under names that come with the SDK: the modules that they are of are not the app's to import.

extension Call {
  /// A number, address or name: the other party of a call.
  public typealias Handle = AppProtocol.Handle
  /// What can be done with a call.
  public typealias Capabilities = CallCapabilities
  /// How a call ended.
  public typealias EndReason = AppProtocol.EndReason
  /// The gateway's word on how a call sounds.
  public typealias Quality = AppProtocol.Quality
  /// What the media of a call counts.
  public typealias Statistics = ClientMedia.Statistics
}

extension Phone {
  /// What the user has said about the microphone.
  public typealias MicrophonePermission = ClientMachines.MicrophonePermission
  /// A part of a version of the user's directory.
  public typealias DirectoryPart = AppProtocol.DirectoryPart
  /// Calls of the user's history, and one of them.
  public typealias HistoryPage = AppProtocol.HistoryPage
  /// A call of the user's history.
  public typealias HistoryEntry = AppProtocol.HistoryEntry
}
