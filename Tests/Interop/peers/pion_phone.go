// An app client of trunkline.v1 on pion's WebRTC stack, as a backend or an engine of calls in Go has it: answers or places one call at a time, plays
// a WAV file, records what it hears.
//
// pion answers the offer of an ICE-lite agent with setup:passive, so the gateway is the DTLS client; --active turns that round. Opus is libopus at
// 8 kHz: what is played and recorded are files of that rate. Prints one JSON object a line with the events of app_phone.py, and besides
// `setup` (its own role and the gateway's), `first_sound` of each generation, `event` (a digit in RTP) and `restarted`. Commands come as lines on
// standard input: answer, end, dtmf DIGITS, tone DIGITS (RFC 4733, in its RTP), restart (ICE), call NUMBER, hold, resume, quit.
//
// Debian has pion as packages of a GOPATH without the /v3 of its imports: Pion.phone in PionTests.swift makes the links and builds it.
package main

/*
#cgo pkg-config: opus
#include <opus.h>
*/
import "C"

import (
	"bufio"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"github.com/pion/ice/v2"
	"github.com/pion/interceptor"
	"github.com/pion/rtp"
	"github.com/pion/webrtc/v3"
)

const (
	rate        = 8000 // of files, of the encoder and of the decoder
	frame       = rate / 50
	ticks       = 48000 / 50 // of an RTP timestamp
	loud        = 500
	digits      = "0123456789*#ABCD"
	digitFrames = 8 // 160 ms
	gapFrames   = 4
)

var options struct {
	url, token, device, play, record, call string
	answerAfter, endAfter, seconds         float64
	calls                                  int
	noPrepare, active, insecure            bool
	address                                string
}

type object = map[string]interface{}

var output sync.Mutex

func say(event string, more object) {
	line := object{"event": event, "at": time.Now().UnixMilli()}
	for key, value := range more {
		line[key] = value
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(err)
	}
	output.Lock()
	defer output.Unlock()
	fmt.Println(string(text))
}

func fail(why string, err error) {
	say("failed", object{"why": fmt.Sprintf("%s: %v", why, err)})
	os.Exit(1)
}

// Files

func readWAV(path string) []int16 {
	data, err := os.ReadFile(path)
	if err != nil {
		fail("cannot read", err)
	}
	if len(data) < 44 {
		fail("cannot read", errors.New(path+" is no WAV file"))
	}
	samples := make([]int16, (len(data)-44)/2)
	for i := range samples {
		samples[i] = int16(binary.LittleEndian.Uint16(data[44+2*i:]))
	}
	return samples
}

func writeWAV(path string, samples []int16) {
	size := uint32(2 * len(samples))
	data := append([]byte("RIFF"), make([]byte, 40, 40+size)...)
	binary.LittleEndian.PutUint32(data[4:], 36+size)
	copy(data[8:], "WAVEfmt ")
	binary.LittleEndian.PutUint32(data[16:], 16)
	binary.LittleEndian.PutUint16(data[20:], 1)
	binary.LittleEndian.PutUint16(data[22:], 1)
	binary.LittleEndian.PutUint32(data[24:], rate)
	binary.LittleEndian.PutUint32(data[28:], 2*rate)
	binary.LittleEndian.PutUint16(data[32:], 2)
	binary.LittleEndian.PutUint16(data[34:], 16)
	copy(data[36:], "data")
	binary.LittleEndian.PutUint32(data[40:], size)
	for _, sample := range samples {
		data = append(data, byte(sample), byte(uint16(sample)>>8))
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		fail("cannot write", err)
	}
}

// What it says

// mouth is a track of its own: pion's tracks have one payload type, and digits need another with the same SSRC (RFC 4733 §2.6).
type mouth struct {
	lock              sync.Mutex
	stream            webrtc.TrackLocalWriter
	ssrc              uint32
	opus, event       uint8
	hasEvent, started bool
	said              []int16
	next              int
	toneDigits        []byte
	toneFrame         int
	toneTimestamp     uint32
	sequence          uint16
	timestamp         uint32
	wasEvent          bool
}

func (m *mouth) Bind(context webrtc.TrackLocalContext) (webrtc.RTPCodecParameters, error) {
	m.lock.Lock()
	defer m.lock.Unlock()
	var chosen *webrtc.RTPCodecParameters
	for _, codec := range context.CodecParameters() {
		codec := codec
		switch {
		case strings.EqualFold(codec.MimeType, webrtc.MimeTypeOpus):
			chosen, m.opus = &codec, uint8(codec.PayloadType)
		case strings.EqualFold(codec.MimeType, "audio/telephone-event") && codec.ClockRate == 48000:
			m.event, m.hasEvent = uint8(codec.PayloadType), true
		}
	}
	if chosen == nil {
		return webrtc.RTPCodecParameters{}, webrtc.ErrUnsupportedCodec
	}
	m.ssrc, m.stream = uint32(context.SSRC()), context.WriteStream()
	return *chosen, nil
}

func (m *mouth) Unbind(webrtc.TrackLocalContext) error {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.stream = nil
	return nil
}

func (m *mouth) ID() string                { return "audio" }
func (m *mouth) RID() string               { return "" }
func (m *mouth) StreamID() string          { return "phone" }
func (m *mouth) Kind() webrtc.RTPCodecType { return webrtc.RTPCodecTypeAudio }

func (m *mouth) start() {
	m.lock.Lock()
	defer m.lock.Unlock()
	if !m.started {
		m.started = true
		say("playing", nil)
	}
}

func (m *mouth) tones(text string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.toneDigits = append(m.toneDigits, text...)
}

// run sends a packet each 20 ms of the clock until done: silence until `start`, then the speech once, then silence. What pion could not send, for
// want of a pair, keeps its sequence number: nothing was lost on the way.
func (m *mouth) run(done <-chan struct{}) {
	var code C.int
	encoder := C.opus_encoder_create(rate, 1, C.OPUS_APPLICATION_VOIP, &code)
	if code != 0 {
		fail("opus_encoder_create", fmt.Errorf("%d", int(code)))
	}
	defer C.opus_encoder_destroy(encoder)
	start := time.Now()
	for count := time.Duration(0); ; count++ {
		select {
		case <-done:
			return
		case <-time.After(time.Until(start.Add(count * 20 * time.Millisecond))):
			m.send(encoder)
		}
	}
}

func (m *mouth) send(encoder *C.OpusEncoder) {
	m.lock.Lock()
	defer m.lock.Unlock()
	var block [frame]int16
	if m.started && m.next < len(m.said) {
		m.next += copy(block[:], m.said[m.next:])
		if m.next == len(m.said) {
			say("played", nil)
		}
	}
	var coded [1275]byte
	size := C.opus_encode(encoder, (*C.opus_int16)(unsafe.Pointer(&block[0])), frame, (*C.uchar)(unsafe.Pointer(&coded[0])), 1275)
	header := rtp.Header{Version: 2, SSRC: m.ssrc, PayloadType: m.opus, SequenceNumber: m.sequence, Timestamp: m.timestamp}
	payload := coded[:size]
	if m.hasEvent && len(m.toneDigits) > 0 {
		if m.toneFrame < digitFrames {
			if m.toneFrame == 0 {
				m.toneTimestamp = m.timestamp
			}
			header.PayloadType, header.Timestamp, header.Marker = m.event, m.toneTimestamp, m.toneFrame == 0
			duration := uint16((m.toneFrame + 1) * ticks)
			end := byte(10)
			if m.toneFrame >= digitFrames-3 { // three times (RFC 4733 §2.5.1.4), with the whole duration
				end, duration = 0x8a, (digitFrames-2)*ticks
			}
			payload = []byte{byte(strings.IndexByte(digits, m.toneDigits[0])), end, byte(duration >> 8), byte(duration)}
		}
		if m.toneFrame++; m.toneFrame == digitFrames+gapFrames {
			m.toneDigits, m.toneFrame = m.toneDigits[1:], 0
		}
	}
	m.timestamp += ticks
	if m.stream == nil {
		return
	}
	if m.wasEvent && header.PayloadType == m.opus {
		header.Marker = true
	}
	if _, err := m.stream.WriteRTP(&header, payload); err == nil {
		m.sequence++
		m.wasEvent = header.PayloadType != m.opus
	}
}

// What it hears

type ear struct {
	lock       sync.Mutex
	heard      []int16
	generation int
	lost       int
}

func (e *ear) run(call *call, track *webrtc.TrackRemote) {
	var code C.int
	decoder := C.opus_decoder_create(rate, 1, &code)
	if code != 0 {
		fail("opus_decoder_create", fmt.Errorf("%d", int(code)))
	}
	defer C.opus_decoder_destroy(decoder)
	opus := uint8(track.PayloadType())
	var sequence uint16
	var next uint32
	loudGeneration, isFirst := 0, true
	var block [frame * 6]int16
	for {
		packet, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		e.lock.Lock()
		if step := packet.SequenceNumber - sequence; !isFirst && step > 1 && step < 0x8000 {
			e.lost += int(step) - 1
		}
		sequence = packet.SequenceNumber
		if packet.PayloadType != opus {
			if packet.Marker && len(packet.Payload) >= 4 && int(packet.Payload[0]) < len(digits) {
				say("event", object{"call": call.id, "digit": string(digits[packet.Payload[0]])})
			}
		} else if len(packet.Payload) > 0 {
			if gap := int32(packet.Timestamp-next) / 6; !isFirst && gap > 0 && gap < 10*rate {
				e.heard = append(e.heard, make([]int16, gap)...)
			}
			count := C.opus_decode(decoder, (*C.uchar)(unsafe.Pointer(&packet.Payload[0])), C.opus_int32(len(packet.Payload)),
				(*C.opus_int16)(unsafe.Pointer(&block[0])), C.int(len(block)), 0)
			if count > 0 {
				e.heard = append(e.heard, block[:count]...)
				next = packet.Timestamp + uint32(count)*6
			}
			if isFirst {
				say("first_frame", object{"call": call.id})
			}
			isFirst = false
			for _, sample := range block[:max(0, int(count))] {
				if (sample > loud || sample < -loud) && loudGeneration != e.generation {
					loudGeneration = e.generation
					say("first_sound", object{"call": call.id, "gen": e.generation})
				}
			}
		}
		e.lock.Unlock()
	}
}

func max(a, b int) int {
	if a > b {
		return a
	}
	return b
}

// A call

type call struct {
	phone      *phone
	id, offer  string
	index, gen int
	pc         *webrtc.PeerConnection
	mouth      mouth
	ear        ear
	lock       sync.Mutex
	readyGen   int
	ended      bool
	done       chan struct{}
}

// newAPI has no address but one: loopback, where the gateways of most tests are, unless --address says otherwise.
func newAPI() *webrtc.API {
	engine := &webrtc.MediaEngine{}
	opus := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypeOpus, ClockRate: 48000, Channels: 2, SDPFmtpLine: "minptime=10;useinbandfec=1"}
	event := webrtc.RTPCodecCapability{MimeType: "audio/telephone-event", ClockRate: 48000, SDPFmtpLine: "0-15"}
	for _, codec := range []webrtc.RTPCodecParameters{
		{RTPCodecCapability: opus, PayloadType: 111}, {RTPCodecCapability: event, PayloadType: 110},
	} {
		if err := engine.RegisterCodec(codec, webrtc.RTPCodecTypeAudio); err != nil {
			fail("RegisterCodec", err)
		}
	}
	interceptors := &interceptor.Registry{}
	if err := webrtc.RegisterDefaultInterceptors(engine, interceptors); err != nil {
		fail("RegisterDefaultInterceptors", err)
	}
	settings := webrtc.SettingEngine{}
	settings.SetIncludeLoopbackCandidate(true)
	settings.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	settings.SetIPFilter(func(address net.IP) bool {
		if options.address != "" {
			return address.Equal(net.ParseIP(options.address))
		}
		return address.IsLoopback()
	})
	settings.SetICEMulticastDNSMode(ice.MulticastDNSModeDisabled)
	if options.active {
		if err := settings.SetAnsweringDTLSRole(webrtc.DTLSRoleClient); err != nil {
			fail("SetAnsweringDTLSRole", err)
		}
	}
	return webrtc.NewAPI(webrtc.WithMediaEngine(engine), webrtc.WithInterceptorRegistry(interceptors), webrtc.WithSettingEngine(settings))
}

func newCall(p *phone, id string) *call {
	pc, err := newAPI().NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		fail("NewPeerConnection", err)
	}
	c := &call{phone: p, id: id, gen: 1, pc: pc, done: make(chan struct{})}
	c.ear.generation = 1
	if options.play != "" {
		c.mouth.said = readWAV(options.play)
	}
	pc.OnICEConnectionStateChange(func(state webrtc.ICEConnectionState) {
		say("ice", object{"call": c.id, "state": state.String()})
		c.mediaChanged()
	})
	pc.OnConnectionStateChange(func(state webrtc.PeerConnectionState) {
		say("media", object{"call": c.id, "state": state.String()})
		c.mediaChanged()
	})
	pc.OnTrack(func(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) { c.ear.run(c, track) })
	sender, err := pc.AddTrack(&c.mouth)
	if err != nil {
		fail("AddTrack", err)
	}
	go func() { // the interceptors see RTCP only if it is read
		buffer := make([]byte, 1500)
		for {
			if _, _, err := sender.Read(buffer); err != nil {
				return
			}
		}
	}()
	go c.mouth.run(c.done)
	p.lock.Lock()
	defer p.lock.Unlock()
	p.count++
	c.index = p.count
	p.calls = append(p.calls, c)
	return c
}

// mediaChanged says media.ready once a generation, when both ICE and DTLS are there, and media.fail.
func (c *call) mediaChanged() {
	c.lock.Lock()
	gen, isOver := c.gen, c.ended
	isReady := c.pc.ConnectionState() == webrtc.PeerConnectionStateConnected &&
		c.pc.ICEConnectionState() == webrtc.ICEConnectionStateConnected && c.readyGen < gen && c.pc.SignalingState() == webrtc.SignalingStateStable
	if isReady {
		c.readyGen = gen
	}
	c.lock.Unlock()
	switch {
	case isOver:
	case isReady:
		pair := object{"local": "host", "remote": "host"}
		c.phone.notify("media.ready", object{"gen": gen, "pair": pair, "rttMs": 1, "dtls": "pion"}, c.id)
		c.ear.lock.Lock()
		c.ear.generation = gen
		c.ear.lock.Unlock()
		say("ready", object{"call": c.id, "gen": gen})
	case c.pc.ConnectionState() == webrtc.PeerConnectionStateFailed:
		c.phone.notify("media.fail", object{"gen": gen, "stage": "ice", "detail": "pion failed"}, c.id)
	}
}

func setupOf(sdp string) string {
	for _, line := range strings.Split(sdp, "\n") {
		if strings.HasPrefix(line, "a=setup:") {
			return strings.TrimSpace(strings.TrimPrefix(line, "a=setup:"))
		}
	}
	return ""
}

// local is the description once all candidates are gathered.
func (c *call) local(description webrtc.SessionDescription, err error) string {
	if err != nil {
		fail("no description", err)
	}
	gathered := webrtc.GatheringCompletePromise(c.pc)
	if err := c.pc.SetLocalDescription(description); err != nil {
		fail("SetLocalDescription", err)
	}
	<-gathered
	return c.pc.LocalDescription().SDP
}

func (c *call) answerSDP() string {
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeOffer, SDP: c.offer}); err != nil {
		fail("SetRemoteDescription", err)
	}
	sdp := c.local(c.pc.CreateAnswer(nil))
	say("setup", object{"call": c.id, "gen": c.gen, "own": setupOf(sdp), "gateway": setupOf(c.offer)})
	return sdp
}

func (c *call) takeAnswer(sdp, own string) {
	say("setup", object{"call": c.id, "gen": c.gen, "own": own, "gateway": setupOf(sdp)})
	if err := c.pc.SetRemoteDescription(webrtc.SessionDescription{Type: webrtc.SDPTypeAnswer, SDP: sdp}); err != nil {
		fail("SetRemoteDescription", err)
	}
	c.mediaChanged()
}

// offered answers the call's offer and, with --answer-after, the call.
func (c *call) offered() {
	c.phone.notify("call.ringing", object{}, c.id)
	if !options.noPrepare {
		reply := c.phone.request("call.prepare", object{"sdp": c.answerSDP(), "gen": c.gen}, c.id)
		say("prepared", object{"call": c.id, "ok": reply.T == "ok"})
	}
	if options.answerAfter >= 0 {
		time.Sleep(time.Duration(options.answerAfter * float64(time.Second)))
		c.answer()
	}
}

func (c *call) answer() {
	body := object{"ageMs": 0, "gen": c.gen}
	if options.noPrepare {
		body["sdp"] = c.answerSDP()
	}
	say("answering", object{"call": c.id})
	reply := c.phone.request("call.answer", body, c.id)
	say("answered", object{"call": c.id, "won": reply.T == "ok", "code": reply.D["code"]})
}

func (p *phone) place(number string) {
	c := newCall(p, uuid.NewString())
	sdp := c.local(c.pc.CreateOffer(nil))
	say("starting", object{"call": c.id})
	body := object{"to": object{"k": "phone", "h": number}, "sdp": sdp, "gen": 1, "video": false}
	reply := p.request("call.start", body, c.id)
	if reply.T != "ok" {
		c.close(object{"reason": "refused", "code": reply.D["code"]})
		return
	}
	say("started", object{"call": c.id})
	c.takeAnswer(text(reply.D["sdp"]), setupOf(sdp))
}

// restart begins a new generation of the same association.
func (c *call) restart() {
	sdp := c.local(c.pc.CreateOffer(&webrtc.OfferOptions{ICERestart: true}))
	c.lock.Lock()
	c.gen++
	gen := c.gen
	c.lock.Unlock()
	reply := c.phone.request("media.restart", object{"sdp": sdp, "gen": gen, "cause": "net"}, c.id)
	say("restarted", object{"call": c.id, "ok": reply.T == "media.answer", "gen": gen, "code": reply.D["code"], "msg": reply.D["msg"]})
	if reply.T == "media.answer" {
		c.takeAnswer(text(reply.D["sdp"]), setupOf(sdp))
	}
}

func (c *call) close(why object) {
	c.lock.Lock()
	isFirst := !c.ended
	c.ended = true
	c.lock.Unlock()
	if !isFirst {
		return
	}
	close(c.done)
	c.ear.lock.Lock()
	heard, lost := c.ear.heard, c.ear.lost
	c.ear.lock.Unlock()
	if options.record != "" {
		writeWAV(strings.Replace(options.record, "%d", fmt.Sprint(c.index), 1), heard)
	}
	sum := 0.0
	for _, sample := range heard {
		sum += float64(sample) * float64(sample)
	}
	line := object{
		"call": c.id, "heardMs": len(heard) * 1000 / rate, "lost": lost, "level": math.Round(math.Sqrt(sum / math.Max(1, float64(len(heard))))),
	}
	for key, value := range why {
		line[key] = value
	}
	if err := c.pc.Close(); err != nil {
		say("fault", object{"why": err.Error()})
	}
	say("ended", line)
	if options.calls > 0 && c.index >= options.calls {
		c.phone.quit()
	}
}

// The session

type message struct {
	T    string `json:"t"`
	ID   string `json:"id,omitempty"`
	Re   string `json:"re,omitempty"`
	Seq  int    `json:"seq,omitempty"`
	Ack  int    `json:"ack,omitempty"`
	Call string `json:"call,omitempty"`
	D    object `json:"d,omitempty"`
}

type phone struct {
	lock      sync.Mutex
	socket    *websocket.Conn
	seq, seen int
	requests  map[string]chan message
	calls     []*call
	count     int
}

func text(value interface{}) string {
	found, _ := value.(string)
	return found
}

func (p *phone) write(m message) {
	if err := p.socket.WriteJSON(m); err != nil {
		say("fault", object{"why": "socket: " + err.Error(), "t": m.T})
	}
}

// notify sends a numbered message; request one with an id, and waits for what answers it.
func (p *phone) notify(kind string, body object, call string) {
	p.lock.Lock()
	defer p.lock.Unlock()
	p.seq++
	p.write(message{T: kind, Seq: p.seq, Ack: p.seen, Call: call, D: body})
}

func (p *phone) request(kind string, body object, call string) message {
	id, answer := uuid.NewString(), make(chan message, 1)
	p.lock.Lock()
	p.requests[id] = answer
	p.seq++
	p.write(message{T: kind, ID: id, Seq: p.seq, Ack: p.seen, Call: call, D: body})
	p.lock.Unlock()
	select {
	case reply := <-answer:
		if reply.T == "err" {
			say("err", object{"to": kind, "code": reply.D["code"], "msg": reply.D["msg"]})
		}
		return reply
	case <-time.After(30 * time.Second):
		fail("no answer", errors.New(kind))
		return message{}
	}
}

func (p *phone) live() *call {
	p.lock.Lock()
	defer p.lock.Unlock()
	for i := len(p.calls) - 1; i >= 0; i-- {
		c := p.calls[i]
		c.lock.Lock()
		isOver := c.ended
		c.lock.Unlock()
		if !isOver {
			return c
		}
	}
	return nil
}

func (p *phone) find(id string) *call {
	p.lock.Lock()
	defer p.lock.Unlock()
	for _, c := range p.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

func (p *phone) quit() {
	p.lock.Lock()
	defer p.lock.Unlock()
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = p.socket.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second))
}

func (p *phone) receive(m message) {
	if m.Seq > 0 {
		p.lock.Lock()
		isNew := m.Seq > p.seen
		if isNew {
			p.seen = m.Seq
			p.write(message{T: "ack", Ack: p.seen})
		}
		p.lock.Unlock()
		if !isNew {
			return
		}
	}
	if m.Re != "" {
		p.lock.Lock()
		waiting := p.requests[m.Re]
		delete(p.requests, m.Re)
		p.lock.Unlock()
		if waiting != nil {
			waiting <- m
			return
		}
	}
	line := object{"call": m.Call}
	for key, value := range m.D {
		if key != "sdp" && key != "ice" && key != "resumeToken" && key != "call" {
			line[key] = value
		}
	}
	if m.T == "call.connected" {
		line["receivedAt"] = time.Now().UnixMilli()
	}
	say(m.T, line)
	switch m.T {
	case "welcome":
		if options.call != "" {
			go p.place(options.call)
		}
	case "call.offer":
		c := newCall(p, m.Call)
		c.offer = text(m.D["sdp"])
		go c.offered()
	case "call.connected":
		if c := p.find(m.Call); c != nil {
			c.mouth.start()
			p.notify("media.active", object{"capture": true, "playout": true}, c.id)
			if options.endAfter >= 0 {
				time.AfterFunc(time.Duration(options.endAfter*float64(time.Second)), func() { p.command([]string{"end"}) })
			}
		}
	case "media.restart": // the gateway asks for an offer
		if c := p.find(m.Call); c != nil {
			go c.restart()
		}
	case "call.ended", "call.cancel", "call.gone":
		if c := p.find(m.Call); c != nil {
			go c.close(object{"kind": m.T, "reason": m.D["reason"], "by": m.D["by"]})
		}
	}
}

func (p *phone) command(words []string) {
	if words[0] == "quit" {
		p.quit()
		return
	}
	if words[0] == "call" && len(words) > 1 {
		go p.place(words[1])
		return
	}
	c := p.live()
	if c == nil {
		say("nocall", object{"command": words[0]})
		return
	}
	switch words[0] {
	case "answer":
		go c.answer()
	case "end":
		go p.request("call.end", object{"reason": "localEnd"}, c.id)
	case "hold", "resume":
		go p.request("call.hold", object{"on": words[0] == "hold"}, c.id)
	case "dtmf":
		go p.request("call.dtmf", object{"digits": words[1], "kind": "tone"}, c.id)
	case "tone":
		c.mouth.tones(words[1])
	case "restart":
		go c.restart()
	}
}

func main() {
	flag.StringVar(&options.url, "url", "", "")
	flag.StringVar(&options.token, "token", "", "")
	flag.StringVar(&options.device, "device", "", "")
	flag.StringVar(&options.play, "play", "", "WAV of 8 kHz")
	flag.StringVar(&options.record, "record", "", "each call overwrites it; %d is the call's number from 1")
	flag.StringVar(&options.call, "call", "", "place a call to this number at once")
	flag.Float64Var(&options.answerAfter, "answer-after", -1, "seconds after the offer; without it the answer command does it")
	flag.Float64Var(&options.endAfter, "end-after", -1, "seconds after call.connected")
	flag.Float64Var(&options.seconds, "seconds", 120, "")
	flag.IntVar(&options.calls, "calls", 0, "quit after so many calls")
	flag.BoolVar(&options.noPrepare, "no-prepare", false, "the SDP goes with call.answer")
	flag.BoolVar(&options.active, "active", false, "answers setup:active")
	flag.BoolVar(&options.insecure, "insecure", false, "takes any TLS certificate")
	flag.StringVar(&options.address, "address", "", "the one address of its candidates; without it loopback")
	flag.Parse()
	time.AfterFunc(time.Duration(options.seconds*float64(time.Second)), func() { fail("timeout", errors.New(fmt.Sprint(options.seconds))) })

	dialer := websocket.Dialer{Subprotocols: []string{"trunkline.v1"}, HandshakeTimeout: 10 * time.Second}
	dialer.TLSClientConfig = &tls.Config{InsecureSkipVerify: options.insecure}
	socket, _, err := dialer.Dial(options.url, nil)
	if err != nil {
		fail("cannot connect", err)
	}
	p := &phone{socket: socket, requests: map[string]chan message{}}
	device := object{"id": options.device, "platform": "linux", "sdk": "pion"}
	p.lock.Lock()
	p.write(message{T: "hello", ID: uuid.NewString(), D: object{
		"auth": options.token, "device": device, "caps": []string{"media.active"}, "state": "fg"}})
	p.lock.Unlock()
	go func() {
		for range time.Tick(10 * time.Second) {
			p.lock.Lock()
			p.write(message{T: "ping"})
			p.lock.Unlock()
		}
	}()
	go func() {
		lines := bufio.NewScanner(os.Stdin)
		for lines.Scan() {
			if words := strings.Fields(lines.Text()); len(words) > 0 {
				p.command(words)
			}
		}
	}()
	for {
		var m message
		if err := socket.ReadJSON(&m); err != nil {
			code, isClose := 1006, &websocket.CloseError{}
			if errors.As(err, &isClose) {
				code = isClose.Code
			} else if !errors.Is(err, io.EOF) {
				say("fault", object{"why": err.Error()})
			}
			say("closed", object{"code": code})
			break
		}
		p.receive(m)
	}
	if c := p.live(); c != nil {
		c.close(object{"reason": "socket"})
	}
}
