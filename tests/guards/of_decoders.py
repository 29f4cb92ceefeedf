"""The guards of decoders."""

from __future__ import annotations

from guard import guard

SANDBOX, READING = "media/sandbox/", "media/image/reading.py"
VIDEO, DECODING = "media/video/reading.py", "media/video/decoding.py"
SOUND, ANSWERS = "media/audio/reading.py", "media/sandbox/answers.py"
MALFORMED = "a file that takes over the child process"
SWELLS = "a file that makes it crash, swell, hang or print"
QUIET = ("test_sandbox.py::test_the_child_prints_nothing_reads_nothing_and_writes_no_file",)
LISTS = "an HLS, concat or SDP list, text as video"
SOUND_SWELLS = "a sound that swells when decoded or resampled, or is very long"
PILLOWS_ERRORS_PASS = (
    "media/image/readers.py",
    '        with library_errors(what, "is cut or damaged", "save or fetch it anew", "MM300"):\n            raise error\n',
    "",
)

GUARDS = (
    guard(
        "anything that makes it raise what is not its own error",
        "the error of the row in its place",
        ("media/library_errors.py", '        raise SourceError(f"{what} {fault} ({type(error).__name__})", hint, code=code) from None', "        raise"),
    ),
    guard("a palette picture without its palette", "our error in the place of Pillow's", PILLOWS_ERRORS_PASS),
    guard(
        SWELLS,
        "the child process",
        (SANDBOX + "decoders.py", "return IsolatedDecoder(policy, memory_bytes) if policy.isolate else InlineDecoder()", "return InlineDecoder()"),
    ),
    guard(
        SWELLS,
        "the limit on memory",
        (SANDBOX + "child.py", "        _lower(resource.RLIMIT_DATA, memory_bytes)\n", ""),
        (SANDBOX + "child.py", "        _lower(resource.RLIMIT_AS, 2 * memory_bytes + (1 << 30))", "        pass"),
    ),
    guard(
        SWELLS,
        "the limit on time",
        (SANDBOX + "process.py", "            if left <= 0:\n", "            if False:\n"),
        (SANDBOX + "child.py", "signal.setitimer(signal.ITIMER_REAL, min(job.seconds, LONGEST) + _GRACE)", "pass"),
        tests=("test_sandbox.py::test_too_much_time_is_named",),
    ),
    guard(
        SWELLS,
        "the error of a row in the place of the end of a child",
        (SANDBOX + "decoders.py", '        raise SourceError(self._words(end), HINT, code="MM902") from None', "        raise end"),
    ),
    guard(
        SWELLS,
        "the closed standard streams",
        (SANDBOX + "interpreter.py", "        stdin=subprocess.DEVNULL,\n        stdout=subprocess.DEVNULL,\n        stderr=subprocess.DEVNULL,\n", ""),
        tests=QUIET,
    ),
    guard(SWELLS, "the limit on files", (SANDBOX + "child.py", "    _lower(resource.RLIMIT_FSIZE, 0)\n", ""), tests=QUIET),
    guard(
        MALFORMED,
        "the refusal of a malformed answer",
        (ANSWERS, "        raise AnswerError(type(error).__name__) from None", "        raise"),
    ),
    guard(
        MALFORMED,
        "only types of the package",
        (ANSWERS, "    if not _OURS.match(module) or not name.isidentifier():", "    if not name.isidentifier():"),
    ),
    guard(
        MALFORMED,
        "only fractions of whole numbers",
        (ANSWERS, "        if type(over) is not int or type(under) is not int:", "        if False:"),
    ),
    guard(MALFORMED, "only arrays of numbers", (ANSWERS, "    if not _NUMBERS.match(dtype):", "    if False:")),
    guard(MALFORMED, "the length of a header", (ANSWERS, "    if end > _LONGEST_HEADER:", "    if False:")),
    guard(
        MALFORMED,
        "the most bytes of an answer",
        (SANDBOX + "process.py", "            if size > self._memory:", "            if False:"),
        (SANDBOX + "process.py", "        if len(message) > self._memory:", "        if False:"),
    ),
    guard(
        MALFORMED,
        "the look for an answer without a job",
        (SANDBOX + "process.py", "        if self._early or self._hears.poll(0):", "        if False:"),
    ),
    guard(MALFORMED, "the environment without keys", (SANDBOX + "interpreter.py", "        env=_environment(),", "        env={**os.environ, **_environment()},")),
    guard(
        MALFORMED,
        "the descriptors of the host that are closed",
        (
            SANDBOX + "interpreter.py",
            "        close_fds=True,\n        pass_fds=[descriptor for descriptor in descriptors if descriptor >= 0],\n",
            "        close_fds=bool([os.set_inheritable(each, True) for each in descriptors if each >= 0]) and False,\n",
        ),
    ),
    guard(
        "a host that is killed, or has closed its standard streams",
        "the end with its parent",
        (SANDBOX + "child.py", 'if sys.platform.startswith("linux"):', "if False:"),
    ),
    guard(
        "a host that is killed, or has closed its standard streams",
        "the numbers above the standard streams",
        (SANDBOX + "interpreter.py", "    if descriptor > 2:\n", "    if True:\n"),
    ),
    guard(
        "a picture of very many pixels, or a very long side",
        "the limit on pixels",
        ("media/policy.py", "    if width * height > policy.max_pixels:", "    if False:"),
    ),
    guard(
        "a picture of very many pixels, or a very long side",
        "the limit on a side",
        ("media/policy.py", "    if max(width, height) > policy.max_side_pixels:", "    if False:"),
    ),
    guard(
        "an AVIF that is larger than its header says",
        "the bound on its memory",
        (SANDBOX + "memory.py", 'if INSIDE not in os.environ or not sys.platform.startswith("linux"):', "if True:"),
    ),
    guard(
        "an animation of very many frames",
        "the limit on frames",
        (READING, "    if frames > policy.max_frames:", "    if False:"),
    ),
    guard(
        "an animation of very many frames",
        "the limit on the pixels of all frames",
        (READING, "    if frames * facts.width * facts.height > most:", "    if False:"),
    ),
    guard(
        "an animation of very many frames",
        "the count that ends at the limit",
        ("media/image/headers.py", "        while frames < most_frames:", "        while True:"),
    ),
    guard(
        "EPS, SVG and other formats that run programs or open files",
        "only the readers of formats that the first bytes show",
        (
            READING,
            '    kind = known_kind(data, "image", "give an image")\n    name = _FORMATS_BY_KIND.get(kind.name)\n',
            ('    import io\n    from PIL import Image as bare\n    return str(bare.open(io.BytesIO(data)).format)\n'
            '    kind = known_kind(data, "image", "give an image")\n    name = _FORMATS_BY_KIND.get(kind.name)\n'),
        ),
        (
            "media/image/readers.py",
            "        reader = _reader(name)\n",
            "        from PIL import Image\n\n        reader = _reader(name) if name in {*_NAMES, 'JPEG', 'PNG', 'TIFF'} else Image.open\n",
        ),
        (READING, '        _KINDS[name].image or "",', '        "",'),
    ),
    guard(
        "EPS, SVG and other formats that run programs or open files",
        "only formats that are allowed",
        (READING, "(name not in FORMATS and name.lower() not in policy.read_also)", "False"),
    ),
    guard(
        "a picture that is cut or damaged",
        "the end of a file that is an error",
        ("media/image/readers.py", "    if not piece:\n        raise EOFError\n", ""),
    ),
    guard(
        "a picture that is cut or damaged",
        "the check sums of a PNG",
        (READING, "            read_header(data, name, policy).verify()\n", ""),
    ),
    guard(
        "a picture that is cut or damaged",
        "the count of the pixels of a PNG",
        (READING, "            if not png_has_all_rows(data):\n", "            if False:\n"),
    ),
    guard(
        "a picture that is cut or damaged",
        "the end mark of a GIF",
        (READING, 'elif name == "GIF" and not gif_layout(data, policy.max_frames + 1).whole:', "elif False:"),
    ),
    guard(
        LISTS,
        "the look at the first bytes of a video",
        (VIDEO, "from mmprompt.media.media_types import Kind, any_type", "from mmprompt.media.media_types import MP4, Kind, any_type, sniff"),
        (VIDEO, 'kind = known_kind(data, "video", "give a video")', "kind = sniff(data) or MP4"),
    ),
    guard(
        LISTS,
        "the look at the first bytes of a sound",
        ("media/audio/readers.py", "from mmprompt.media.media_types import FLAC, OGG, WAV, Kind", "from mmprompt.media.media_types import FLAC, MP4, OGG, WAV, Kind, sniff"),
        ("media/audio/readers.py", 'kind = known_kind(data, "audio", "give a sound file")', "kind = sniff(data) or MP4"),
    ),
    guard(LISTS, "the readers that a video may have", (VIDEO, '        "format_whitelist": kind.demuxers,\n', "")),
    guard(
        LISTS,
        "the readers that a sound may have",
        (
            "media/audio/av_reader.py",
            'options = {**_OPTIONS, "format_whitelist": av.ContainerFormat(demuxer, "r").name}',
            "options = _OPTIONS",
        ),
        ("media/audio/av_reader.py", "open_bytes(data, kind, options, policy, demuxer)", "open_bytes(data, kind, options, policy)"),
    ),
    guard(
        LISTS,
        "the protocols of a video: none",
        (VIDEO, '        "protocol_whitelist": "",\n', ""),
        tests=("test_video.py::test_the_decoders_are_told_what_they_may_open",),
    ),
    guard(
        LISTS,
        "the protocols of a sound: none",
        ("media/audio/av_reader.py", '_OPTIONS = {"protocol_whitelist": "", ', "_OPTIONS = {"),
        tests=("test_video.py::test_the_decoders_are_told_what_they_may_open",),
    ),
    guard(
        "a video of very large pictures, or a header that lies about them",
        "the size in the header",
        (VIDEO, "    watch_video(policy).check_size(stream.codec_context.width, stream.codec_context.height)\n", ""),
    ),
    guard(
        "a video of very large pictures, or a header that lies about them",
        "the limit that the decoder holds",
        (VIDEO, '        stream.codec_context.options = {"max_pixels": most, "err_detect": "explode"}', '        stream.codec_context.options = {"err_detect": "explode"}'),
    ),
    guard(
        "a video of very large pictures, or a header that lies about them",
        "the size of the first frame",
        (VIDEO, "                watch.check_size(frames[0].width, frames[0].height)\n", ""),
    ),
    guard(
        "a video of very large pictures, or a header that lies about them",
        "the size of every frame",
        (DECODING, "            watch.check_size(frame.width, frame.height)\n", ""),
    ),
    guard(
        "a very long video",
        "the length in the header",
        (VIDEO, "    check_seconds(declared_seconds(container, stream, data), policy)\n", ""),
    ),
    guard(
        "a very long video",
        "the length that the packets state",
        (DECODING, "    check_seconds(_span(packets), policy)\n", ""),
    ),
    guard(
        "very many frames, or many in one packet",
        "the count of packets",
        (DECODING, "                if len(packets) > policy.max_frames:", "                if False:"),
    ),
    guard(
        "very many frames, or many in one packet",
        "the count of frames",
        (DECODING, "        if len(stated) > policy.max_frames:", "        if False:"),
    ),
    guard(
        "very many frames, or many in one packet",
        "the count before the first frame",
        (VIDEO, "            if walked > policy.max_frames:", "            if False:"),
    ),
    guard(
        "very many frames, or many in one packet",
        "the limit on time",
        ("media/ffmpeg.py", "        return time.monotonic() > self._end", "        return False"),
    ),
    guard(
        "very many frames, or many in one packet",
        "the limit on the bytes of packets",
        ("media/ffmpeg.py", "        if self._room < 0:", "        if False:"),
    ),
    guard(
        "a video that is cut, or holds no pictures",
        "the length that is there against the declared one",
        (VIDEO, "    if declared is not None and declared - seconds > max(", "    if False and declared is not None and declared - seconds > max("),
    ),
    guard(
        "a video that is cut, or holds no pictures",
        "the damage that is an error",
        (VIDEO, ', "err_detect": "explode"}', "}"),
        (DECODING, "        if frame is not None and not frame.is_corrupt:", "        if frame is not None:"),
        (DECODING, "if frame is None or (frame.pts in missing and frame.is_corrupt):", "if frame is None:"),
    ),
    guard(SOUND_SWELLS, "the declared samples", (SOUND, "        check_decoded(expected * facts.channels, self._policy)\n", "")),
    guard(SOUND_SWELLS, "the count of samples that are kept", (SOUND, "            check_decoded(end * block.shape[1], self._policy)\n", "")),
    guard(SOUND_SWELLS, "the count of samples without a longest time", (SOUND, "            check_decoded(count * reader.facts.channels, policy)\n", "            pass\n")),
    guard(SOUND_SWELLS, "the count of seconds", (SOUND, "        elif count > policy.max_seconds * reader.facts.rate:", "        elif False:")),
    guard(SOUND_SWELLS, "the declared seconds", (SOUND, "policy.max_seconds is not None and declared > policy.max_seconds:", "False:")),
    guard(
        SOUND_SWELLS,
        "the count of samples before a change of rate",
        ("media/audio/changes.py", "        check_decoded(round(len(samples) * form.rate / rate) * form.channels, policy)\n", ""),
    ),
    guard(
        SOUND_SWELLS,
        "the same for transformers",
        ("targets/hf_media.py", "            check_decoded(round(len(samples) * self._sampling_rate / rate), self._policy)\n", ""),
    ),
    guard(
        "a sound header that lies about rate, channels or sizes",
        "the possible rates",
        ("media/audio/facts.py", "    if not LOWEST_RATE <= rate <= HIGHEST_RATE:", "    if False:"),
    ),
    guard(
        "a sound header that lies about rate, channels or sizes",
        "the possible channels",
        ("media/audio/facts.py", "    if not 1 <= channels <= MOST_CHANNELS:", "    if False:"),
    ),
    guard(
        "a sound header that lies about rate, channels or sizes",
        "the places in a file that cannot be",
        ("media/ffmpeg.py", "        except (OverflowError, ValueError):\n", "        except KeyError:\n"),
    ),
    guard(
        "samples that are not numbers",
        "the look for them",
        ("media/audio/changes.py", "    if not np.isfinite(samples).all():", "    if False:"),
    ),
    guard("a file whose bytes or parts were changed at random", "our error in the place of Pillow's", PILLOWS_ERRORS_PASS),
    guard(
        "a file whose bytes or parts were changed at random",
        "our error in the place of PyAV's",
        (VIDEO, "    except (av.FFmpegError, ValueError):\n        raise SourceError(\n", "    except ZeroDivisionError:\n        raise SourceError(\n"),
    ),
)  # fmt: skip
