/// The npm package's files, embedded in the binary: the gateway serves them beside its own page.
public enum WebClient {
  /// Scripts with the path each is served at. The service worker is at the root: what it may control lies below it.
  public static let scripts: [(path: String, bytes: [UInt8])] = [
    ("/trunkline/trunkline.js", PackageResources.trunkline_js),
    ("/trunkline/call.js", PackageResources.call_js),
    ("/trunkline/media.js", PackageResources.media_js),
    ("/trunkline/session.js", PackageResources.session_js),
    ("/trunkline/devices.js", PackageResources.devices_js),
    ("/trunkline/push.js", PackageResources.push_js),
    ("/trunkline/events.js", PackageResources.events_js),
    ("/trunkline/texts.js", PackageResources.texts_js),
    ("/trunkline/base64.js", PackageResources.base64_js),
    ("/service-worker.js", PackageResources.service_worker_js),
  ]
}
