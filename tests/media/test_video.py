"""Video files: their facts, and the rows of the threat table about them; each bait first works on the bare library."""

from __future__ import annotations

import base64
import io
import os
import struct
import subprocess
import sys
import time
from fractions import Fraction
from functools import partial

import av
import clips
import pytest
from clips import clip, needs_ffmpeg
from image_files import saved
from loopback_server import LoopbackServer, free_udp_ports, reply
from PIL import Image
from taken_frames import video_frames
from time_taken import wait_until

from mmprompt.errors import MediaError, PolicyError, SourceError
from mmprompt.media import MediaPolicy, MediaReader
from mmprompt.media.audio.reading import audio_facts
from mmprompt.media.ffmpeg import open_bytes
from mmprompt.media.media_types import KINDS
from mmprompt.media.video import reading as video_module
from mmprompt.media.video.changes import sound_track
from mmprompt.media.video.reading import video_facts
from mmprompt.messages import MediaRef

READERS = {kind: kind.demuxers for kind in KINDS if kind.video and kind.demuxers}
POLICY = MediaPolicy()


def refused(data, policy=POLICY, error=SourceError):
    """Return what ``video_facts`` says against some bytes, after all the other ways in refused them, too."""
    with pytest.raises(error):
        video_frames(data, policy, count=2)
    with pytest.raises(error):
        sound_track(data, policy)
    with pytest.raises(error) as caught:
        video_facts(data, policy)
    return str(caught.value)


def test_facts_are_those_of_the_header():
    assert video_facts(clip(50, sound=True), POLICY) == ("MP4", "h264", 96, 64, 0, 2.0, 50, 25.0, True)
    facts = video_facts(clip(50, container="matroska", codec="libvpx-vp9", deadline="realtime"), POLICY)
    assert facts == ("Matroska", "vp9", 96, 64, 0, 2.0, None, 25.0, False)
    # the size of MPEG-4 in MP4 is known to the decoder alone
    assert video_facts(clip(5, codec="mpeg4"), POLICY)[1:4] == ("mpeg4", 96, 64)


@needs_ffmpeg
@pytest.mark.parametrize("container", ["mp4", "matroska", "mpegts", "avi", "mov"])
def test_facts_are_those_of_ffprobe(container, tmp_path):
    path = tmp_path / "clip.bin"
    path.write_bytes(clip(50, container=container))
    facts = video_facts(path.read_bytes(), POLICY)
    rows = clips.probed(path, "stream=codec_name,width,height,avg_frame_rate,nb_frames")[0]
    assert rows[:3] == [facts.codec, str(facts.width), str(facts.height)]
    assert Fraction(rows[3]) == Fraction(facts.fps)
    assert rows[4] == (str(facts.frames) if facts.frames else "N/A")


def test_no_reader_in_use_opens_further_files():
    used = {name for names in READERS.values() for name in names.split(",")}
    assert not used & {"hls", "concat", "dash", "sdp", "rtsp", "image2", "tty", "lavfi", "imf", "tee"}


def test_a_playlist_that_names_a_local_file_is_refused(tmp_path):
    (tmp_path / "secret.ts").write_bytes(clip(10, container="mpegts"))
    playlist = b"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\nsecret.ts\n#EXT-X-ENDLIST\n"
    (tmp_path / "list.m3u8").write_bytes(playlist)
    with av.open(str(tmp_path / "list.m3u8")) as bait:
        assert bait.format.name == "hls"
        assert next(bait.decode(video=0)).width == 96
    assert "HLS or M3U playlist" in refused(playlist)
    (tmp_path / "list.mp4").write_bytes(playlist)
    with pytest.raises(SourceError, match="playlist, which names other files"):
        MediaReader(MediaPolicy(tmp_path)).read(MediaRef("video", "list.mp4"))


class NamedFile(io.BytesIO):
    name = "list.m3u8"  # as open files have one; PyAV goes by it


@pytest.mark.parametrize("form", ["hls", "concat"])
def test_a_playlist_that_names_a_server_asks_it_nothing(form, tmp_path):
    with LoopbackServer(reply(clip(10, container="mpegts"))) as server:
        url = server.url("/secret.ts")
        if form == "hls":
            playlist = f"#EXTM3U\n#EXT-X-TARGETDURATION:2\n#EXTINF:2.0,\n{url}\n#EXT-X-ENDLIST\n".encode()
            bait = av.open(NamedFile(playlist))
        else:
            playlist = f"ffconcat version 1.0\nfile '{url}'\n".encode()
            bait = av.open(io.BytesIO(playlist), options={"safe": "0"})  # as most advice on concat lists has it
        with bait:
            assert next(bait.decode(video=0)).width == 96
        asked = len(server.requests)
        assert asked
        assert "names other files" in refused(playlist)
        (tmp_path / "list.mp4").write_bytes(playlist)
        data_uri = "data:video/mp4;base64," + base64.b64encode(playlist).decode()
        reader = MediaReader(MediaPolicy(tmp_path, [server.entry], fetch=True))
        for source in ("list.mp4", playlist, data_uri):
            with pytest.raises(SourceError, match="names other files"):
                reader.read(MediaRef("video", source))
        for head in (b"\0\0\0\x18ftypisom", b"\x1aE\xdf\xa3\x42\x82\x88webm", b"RIFF\0\0\0\0AVI "):
            refused(head + playlist)
        assert len(server.requests) == asked


def test_a_concat_list_is_refused_though_it_is_nameless(tmp_path, monkeypatch):
    (tmp_path / "secret.mp4").write_bytes(clip(10))
    script = b"ffconcat version 1.0\nfile 'secret.mp4'\n"
    monkeypatch.chdir(tmp_path)
    with av.open(io.BytesIO(script)) as bait:
        assert bait.format.name == "concat"
        assert next(bait.decode(video=0)).width == 96
    assert "concat list, which names other files" in refused(script)


def test_a_session_description_opens_no_socket():
    text = (
        b"v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nc=IN IP4 127.0.0.1\nt=0 0\n"
        b"m=video %d RTP/AVP 96\na=rtpmap:96 H264/90000\n" % free_udp_ports()
    )
    started = time.monotonic()
    try:
        with av.open(io.BytesIO(text), timeout=0.3) as bait:
            assert bait.format.name == "sdp"
    except av.error.ExitError:
        pass  # it listened until its time was over
    assert time.monotonic() - started > 0.25
    assert "SDP description" in refused(text)


def test_a_playlist_behind_the_signature_of_a_video_reaches_no_other_reader(tmp_path, monkeypatch):
    (tmp_path / "secret.mp4").write_bytes(clip(10))
    monkeypatch.chdir(tmp_path)
    for head in (
        b"\0\0\0\x18ftypisom",
        b"OggS",
        b"\x1aE\xdf\xa3\x42\x82\x88webm",
        b"RIFF\0\0\0\0AVI ",
        b"\0\0\x01\xba",
    ):
        for text in (b"ffconcat version 1.0\nfile 'secret.mp4'\n", b"#EXTM3U\n#EXTINF:2,\nsecret.mp4\n"):
            refused(head + text)


def test_where_the_first_look_errs_only_the_readers_of_its_kind_are_asked(tmp_path, monkeypatch):
    """The look at the first bytes is one guard; this takes it away, and holds that there is another behind it."""
    (tmp_path / "secret.mp4").write_bytes(clip(10))
    monkeypatch.chdir(tmp_path)
    script = b"ffconcat version 1.0\nfile 'secret.mp4'\n"
    with av.open(io.BytesIO(script)) as bait:
        assert bait.format.name == "concat"
    for kind in READERS:
        monkeypatch.setattr(video_module, "_kind", lambda _, kind=kind: kind)
        assert "cannot be opened" in refused(script)


@pytest.mark.parametrize(("bait", "reader"), [("list", "concat"), ("picture", "png_pipe"), ("subtitles", "srt")])
def test_only_the_readers_of_its_kind_open_a_file(bait, reader, tmp_path, monkeypatch):
    """A file that PyAV opens with a reader of another kind; the look at the first bytes is taken away, too."""
    (tmp_path / "secret.mp4").write_bytes(clip(10))
    monkeypatch.chdir(tmp_path)
    data = {
        "list": b"ffconcat version 1.0\nfile 'secret.mp4'\n",
        "picture": saved(Image.new("RGB", (8, 8)), "PNG"),
        "subtitles": b"1\n00:00:00,000 --> 00:00:01,000\nhello\n",
    }[bait]
    with av.open(io.BytesIO(data)) as bare:
        assert bare.format.name == reader
    for kind, readers in READERS.items():
        with pytest.raises((av.FFmpegError, ValueError)):  # this guard alone
            open_bytes(data, kind, {"format_whitelist": readers}, POLICY)
        monkeypatch.setattr(video_module, "_kind", lambda _, kind=kind: kind)
        assert "cannot be opened" in refused(data)


def test_the_decoders_are_told_what_they_may_open(monkeypatch):
    silent, with_sound = clip(5), clip(5, sound=True)
    told = []
    real = av.open
    monkeypatch.setattr(av, "open", lambda *given, **named: told.append(named) or real(*given, **named))
    video_facts(silent, POLICY)
    audio_facts(with_sound, POLICY)
    assert {named["container_options"]["protocol_whitelist"] for named in told} == {""}  # some open twice
    assert all("mov" in named["container_options"]["format_whitelist"] for named in told)
    assert {named["format"] for named in told} == {None, "mov"}


def test_frames_before_the_first_whole_one_are_walked_to_the_limit():
    data = bytearray(clip(30, codec="mjpeg", pixel_format="yuvj420p", container="matroska"))
    at = -1
    for _ in range(20):  # of the first twenty pictures nothing is left but their places
        at = data.index(b"\xff\xd8\xff", at + 1)
        data[at : at + 600] = bytes(600)
    assert video_facts(bytes(data), MediaPolicy(max_frames=30)).codec == "mjpeg"
    with pytest.raises(SourceError, match="no frame that can be decoded"):
        video_facts(bytes(data), MediaPolicy(max_frames=10))


def test_text_is_no_video(tmp_path):
    text = b"hello world\n" * 50
    (tmp_path / "bait.txt").write_bytes(text)
    with av.open(str(tmp_path / "bait.txt")) as bait:
        assert bait.format.name == "tty"
        assert next(bait.decode(video=0)).width == 640
    assert "plain text" in refused(text)


def test_names_that_are_patterns_or_protocols_are_only_names(tmp_path):
    secret = tmp_path / "secret"
    root = tmp_path / "root"
    secret.mkdir()
    root.mkdir()
    (secret / "s.mp4").write_bytes(clip(10))
    Image.new("RGB", (32, 32)).save(secret / "img001.png")
    size = (secret / "s.mp4").stat().st_size
    reader = MediaReader(MediaPolicy(root))
    baits = [f"subfile,,start,0,end,{size},,:{secret}/s.mp4", f"concat:{secret}/s.mp4", f"{secret}/img%03d.png"]
    for name in baits:
        with av.open(name) as bait:
            assert bait.streams.video[0].width in (32, 96)
        with pytest.raises(MediaError):
            reader.read(MediaRef("video", name))
    with pytest.raises(TypeError):
        video_facts(baits[0], POLICY)


_PEAK = """
import io, re, sys
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
data = open(sys.argv[1], "rb").read()
import av, numpy
from mmprompt.errors import MediaError
from mmprompt.media.media_types import KINDS
from mmprompt.media.policy import MediaPolicy
from mmprompt.media.video.frame_choice import FrameChoice
from mmprompt.media.video.frames import take_frames
from mmprompt.media.video.reading import video_facts
before = peak()
if sys.argv[2] == "bare":
    with av.open(io.BytesIO(data)) as container:
        next(container.decode(video=0))
else:
    for act in (video_facts, lambda d, p: take_frames(d, p, FrameChoice(1), lambda: bytes)):
        try:
            act(data, MediaPolicy(max_pixels=1_000_000))
        except MediaError as error:
            assert sys.argv[3] in str(error), error
        else:
            sys.exit("not refused")
print(peak() - before)
"""


def peaks_of(path, words, environment):
    """Return how many KiB bare PyAV takes for the first picture of a video, and how many we take to refuse it."""
    commands = [[sys.executable, "-c", _PEAK, path, who, words] for who in ("bare", "ours")]
    return [int(subprocess.check_output(command, env=environment, timeout=60)) for command in commands]


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory in KiB is Linux's")
def test_a_video_bomb_is_refused_before_anything_is_decoded(tmp_path, command_environment):
    path = tmp_path / "bomb.mp4"
    path.write_bytes(clip(1, size=(4096, 4096), preset="ultrafast", tune="zerolatency"))
    assert path.stat().st_size < 200_000
    said = "4096 x 4096 pixels, more than max_pixels (1000000); make it smaller"
    bare, ours = peaks_of(path, said, command_environment)
    assert bare > 24_000  # 4096 x 4096 x 1.5 bytes are 24,576 KiB
    assert ours < 8_000


def lying(side):
    """Return a video whose container says 16 x 16 while its pictures have ``side`` x ``side`` pixels."""
    data = bytearray(clip(2, codec="mjpeg", size=(side, side), pixel_format="yuvj420p", container="mp4"))
    at = data.index(b"mp4v") + 4 + 24
    assert data[at : at + 4] == 2 * side.to_bytes(2, "big")
    data[at : at + 4] = b"\0\x10\0\x10"
    return bytes(data)


@pytest.mark.skipif(sys.platform != "linux", reason="peak memory in KiB is Linux's")
def test_the_decoder_makes_no_picture_that_is_larger_than_allowed(tmp_path, command_environment):
    path = tmp_path / "liar.mp4"
    path.write_bytes(lying(3072))
    bare, ours = peaks_of(path, "no frame that can be decoded", command_environment)
    assert bare > 13_000  # 3072 x 3072 x 1.5 bytes are 13,824 KiB
    assert ours < 8_000


def test_a_header_that_lies_about_the_size_does_not_help():
    data = lying(1024)
    with av.open(io.BytesIO(data)) as bait:
        assert next(bait.decode(video=0)).width == 1024
    for policy in (MediaPolicy(max_pixels=1000), MediaPolicy(max_pixels=1_000_000)):
        with pytest.raises((PolicyError, SourceError)):
            video_frames(data, policy, count=1)
        with pytest.raises((PolicyError, SourceError)):
            video_facts(data, policy)


def test_the_size_of_a_picture_may_be_just_what_is_allowed():
    assert video_facts(clip(5), MediaPolicy(max_pixels=96 * 64)).width == 96
    message = refused(clip(5), MediaPolicy(max_pixels=96 * 64 - 1), PolicyError)
    assert (
        message
        == "the video has 96 x 64 pixels, more than max_pixels (6143); make it smaller, or drop the row; for data you "
        "trust, --policy trusted allows 500000000 pixels"
    )


def test_a_long_video_is_refused():
    assert video_facts(clip(50), MediaPolicy(max_seconds=2)).seconds == 2.0
    message = refused(clip(50), MediaPolicy(max_seconds=1.9), PolicyError)
    assert message == "the video lasts 2.0 s, more than 1.9 s; raise max_seconds to allow it, or use --policy trusted"


def test_a_video_that_is_longer_than_allowed_is_refused_before_its_packets_are_read():
    data = clip(50, movflags="faststart")
    cut = data[: data.index(b"mdat") + 4]
    assert b"moov" in cut
    for act in (video_facts, partial(video_frames, count=1)):
        with pytest.raises(PolicyError, match=r"the video lasts 2.0 s, more than 1.9 s"):
            act(cut, MediaPolicy(max_seconds=1.9))
        with pytest.raises(SourceError):
            act(cut, POLICY)


def test_a_video_is_as_long_as_its_packets_say_whatever_its_header_states():
    data = clip(50, container="matroska")
    at = data.index(b"\x44\x89\x88") + 3  # the duration, a number of 8 bytes in milliseconds
    data = data[:at] + struct.pack(">d", 100) + data[at + 8 :]
    with av.open(io.BytesIO(data)) as bait:
        assert bait.duration == 100_000
        assert sum(1 for packet in bait.demux(video=0) if packet.size) == 50
    assert video_frames(data, MediaPolicy(max_seconds=2), count=1)
    with pytest.raises(PolicyError, match=r"the video lasts 2.0 s, more than 1.9 s"):
        video_frames(data, MediaPolicy(max_seconds=1.9), count=1)


def test_the_bytes_of_packets_are_bounded():
    data = clip(50, codec="rawvideo", container="avi")
    assert video_frames(data, MediaPolicy(max_bytes=len(data) // 8 + 1), count=1)
    with pytest.raises(PolicyError, match=r"the packets of the video take more than 8 x max_bytes"):
        video_frames(data, MediaPolicy(max_bytes=len(data) // 10), count=1)


def test_a_cut_video_is_an_error_wherever_it_is_cut():
    whole = clip(50, sound=True, g="10")
    with av.open(io.BytesIO(clip(50, sound=True, g="10", movflags="faststart")[:-800])) as bait:
        assert 0 < sum(1 for packet in bait.demux(video=0) if packet.size) <= 50  # it opens, and says nothing
    for share in (0.01, 0.3, 0.6, 0.9, 0.99):
        with pytest.raises(SourceError):
            video_frames(whole[: int(len(whole) * share)], POLICY, count=8)
    ahead = clip(50, g="10", movflags="faststart")
    for share in (0.01, 0.3, 0.6, 0.9, 0.99):
        with pytest.raises(SourceError):
            video_frames(ahead[: int(len(ahead) * share)], POLICY, count=8)
    with pytest.raises(SourceError, match=r"the video is cut: [01]\.\d of 2\.0 s are there"):
        video_frames(ahead[: len(ahead) * 6 // 10], POLICY, count=8)


def test_a_cut_matroska_is_an_error():
    whole = clip(50, container="matroska", g="10")
    with pytest.raises(SourceError):
        video_frames(whole[: len(whole) // 3], POLICY, count=2)


def test_a_picture_is_no_video():
    buffer = io.BytesIO()
    Image.new("RGB", (32, 32)).save(buffer, "JPEG")
    with av.open(io.BytesIO(buffer.getvalue())) as bait:
        assert bait.streams.video[0].width == 32
    assert "JPEG, not a video; tag it as image" in refused(buffer.getvalue())


def sound_alone(cover=b""):
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as out:
        stream = out.add_stream("aac", rate=44100)
        block = av.AudioFrame(format="fltp", layout="stereo", samples=44100)
        for plane in block.planes:
            plane.update(bytes(plane.buffer_size))
        block.sample_rate, block.pts = 44100, 0
        out.mux(stream.encode(block))
        out.mux(stream.encode())
    return file.getvalue()


def test_an_mp4_of_sound_alone_is_named():
    data = sound_alone()
    with av.open(io.BytesIO(data)) as bait:
        assert not bait.streams.video
    assert refused(data) == "the MP4 file holds sound alone; tag it as audio, or name another file"


@needs_ffmpeg
def test_the_cover_of_a_song_is_no_video(tmp_path):
    (tmp_path / "song.mp4").write_bytes(sound_alone())
    Image.new("RGB", (32, 32)).save(tmp_path / "cover.jpg")
    covered = tmp_path / "covered.mp4"
    clips.ffmpeg(
        *("-i", tmp_path / "song.mp4", "-i", tmp_path / "cover.jpg", "-map", 0, "-map", 1, "-c", "copy"),
        *("-disposition:v:0", "attached_pic", covered),
    )
    with av.open(str(covered)) as bait:
        assert len(bait.streams.video) == 1
    assert "holds sound alone" in refused(covered.read_bytes())


def test_an_odd_codec_is_refused_by_name():
    data = clip(2, codec="asv1", container="avi")
    with av.open(io.BytesIO(data)) as bait:
        assert bait.streams.video[0].codec_context.name == "asv1"
    assert "video of codec asv1; convert it to H.264" in refused(data)


@pytest.mark.parametrize("data", [b"", b"x", b"\0" * 2000, b"\0\0\0\x18ftypisom" + b"\0" * 64])
def test_bytes_that_are_nothing_are_an_error(data):
    refused(data)


def test_a_stream_that_appears_late_crashes_nothing():
    """PyAV before 18 dies of per-stream options where streams come after the header; so none are given."""
    assert video_facts(clip(10, container="mpeg", codec="mpeg2video"), POLICY).container == "MPEG"


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="counts descriptors and threads under /proc")
def test_nothing_leaks_and_nothing_is_printed(capfd):
    good, broken = clip(30, sound=True), clip(30, sound=True)[:-700]

    def work():
        for data in (good, broken, b"#EXTM3U\n"):
            for act in (video_facts, lambda d, p: video_frames(d, p, fps=4), sound_track):
                try:
                    act(data, POLICY)
                except SourceError:
                    continue

    def held():
        return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

    work()
    descriptors, threads = held()
    for _ in range(5):
        work()
    # a thread that was waited for is listed a moment longer
    assert wait_until(lambda: held()[0] <= descriptors and held()[1] <= threads)
    assert capfd.readouterr() == ("", "")
