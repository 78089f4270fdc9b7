public import AppProtocol
public import ClientMachines

// What an app reads of a call and says to the phone, under names that come with the SDK: the modules that they are of are not the app's to import.

extension Call {
  public typealias Handle = AppProtocol.Handle
  public typealias Capabilities = CallCapabilities
  public typealias EndReason = AppProtocol.EndReason
  public typealias Quality = AppProtocol.Quality
  public typealias Statistics = ClientMedia.Statistics
}

extension Phone {
  public typealias MicrophonePermission = ClientMachines.MicrophonePermission
}
