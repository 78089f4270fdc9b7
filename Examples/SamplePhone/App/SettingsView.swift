import SamplePhone
import SwiftUI

struct SettingsView: View {
  @Bindable var model: SampleModel
  let callerID: CallerID
  @State private var token = ""

  var body: some View {
    List {
      Section("Calls") {
        Toggle("Do not disturb", isOn: $model.settings.doesNotDisturb)
        TextField("Call from", text: $model.settings.callerNumber)
        // only while the app is open: on a locked screen nobody is asked
        Button("Allow the microphone") { Task { await model.askForMicrophone() } }
      }
      Section("Caller ID and blocking") {
        Text(callerID.text)
        Button("Load the directory") { Task { await callerID.load() } }
        Button("Open the system's settings") { Task { await callerID.openSettings() } }
      }
      Section("Login") {
        TextField("Token", text: $token)
        Button("Keep") {
          Backend.keep(token: token)
          token = ""
        }
        Button("Log out") { Task { await model.logOut() } }
      }
    }
  }
}
