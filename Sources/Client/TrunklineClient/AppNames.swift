public import TrunklineAppProtocol
public import TrunklineClientMachines

// Names that the SDK exports for types that an app reads or passes; the app need not import their modules.

extension Call {
  /// A number, address or name: the peer of a call.
  public typealias Handle = TrunklineAppProtocol.Handle
  /// The operations that a call supports.
  public typealias Capabilities = CallCapabilities
  /// How a call ended.
  public typealias EndReason = TrunklineAppProtocol.EndReason
  /// The gateway's rating of a call's audio.
  public typealias Quality = TrunklineAppProtocol.Quality
  /// Counters of a call's media.
  public typealias Statistics = ClientMedia.Statistics
}

extension Phone {
  /// The user's permission for the microphone.
  public typealias MicrophonePermission = TrunklineClientMachines.MicrophonePermission
  /// A part of a version of the user's directory.
  public typealias DirectoryPart = TrunklineAppProtocol.DirectoryPart
  /// A page of calls from the user's history.
  public typealias HistoryPage = TrunklineAppProtocol.HistoryPage
  /// A call of the user's history.
  public typealias HistoryEntry = TrunklineAppProtocol.HistoryEntry
}
