"""The guards of URLs, of texts, of files beside the data and of servers."""

from __future__ import annotations

from guard import guard

FETCHER, CONNECTIONS = "media/fetch/fetcher.py", "media/fetch/connections.py"
JINJA, GRANTS, SIDE = "templates/jinja_bounds.py", "tasks/grants.py", "datasets/side_files.py"
PYTHON = "is a manifest, plan, state, baseline, config or task of data that names Python"
SWELLS = "answers with a body that swells, drips, never ends or lies about its length"
PRIVATE = "leads to a network that is not public"
REDIRECTS = "redirects to an internal host, to a file or without end"
TELLS = "would show a path, address, payload or key in an error"
FULL_DISK = tuple(
    [
        f"../cli/test_full_disk.py::test_a_full_disk_costs_one_line_and_nothing_that_was_there[render-{room}]"
        for room in (0, 12288, 307200)
    ]
)
RUNS_PYTHON = ("tasks/files.py", "    if not isinstance(path, TypedPath):", "    if False:")
NAMES_PYTHON = ("viewer/journal_task.py", '    if name.lower().endswith(".py"):', "    if False:")

GUARDS = (
    guard(
        "is in the data, and nobody asked to fetch",
        "the word of the policy",
        ("media/reader.py", "        if policy.fetch and self._inline:", "        if self._inline:"),
        (FETCHER, "AllowedHosts(policy.allow_domains if policy.fetch else ())", "AllowedHosts(policy.allow_domains)"),
    ),
    guard(
        "is in the data, and nobody asked to fetch",
        "the look at the host",
        ("media/reader.py", "if self._fetcher is not None and self._fetcher.allows(value):", "if self._fetcher is not None:"),
    ),
    guard(
        "names this machine in an unusual way",
        "the judgement of addresses",
        ("media/fetch/hosts.py", "        if fault and (str(as_ip(address)), port) not in self._addresses:", "        if False:"),
    ),
    guard(
        "resolves to another address at the second look",
        "the judgement of the addresses that are dialled",
        (CONNECTIONS, '            self.hosts.check_address(host, port, f"{where[0]}{scope}")\n', ""),
    ),
    guard(
        "resolves to another address at the second look",
        "the judgement of the address that is reached",
        (CONNECTIONS, "        self.hosts.check_address(self.host, self.port, str(peer[0]))", "        pass"),
    ),
    guard(
        PRIVATE,
        "the networks of IPv4",
        ("media/fetch/addresses.py", '        return next((name for network, name in _V4 if ip in network), "")', '        return ""'),
    ),
    guard(
        PRIVATE,
        "the networks of IPv6",
        ("media/fetch/addresses.py", 'fault = next((name for network, name in _V6 if ip in network), "")', 'fault = ""'),
    ),
    guard(
        PRIVATE,
        "the IPv4 address that is mapped into IPv6",
        ("media/fetch/addresses.py", "return None if ip.scope_id is not None else ip.ipv4_mapped or ip", "return None if ip.scope_id is not None else ip"),
    ),
    guard(
        REDIRECTS,
        "the judgement of each hop",
        (FETCHER, "            self._check(current)\n", "            self._check(url)\n"),
        (CONNECTIONS, "        self.hosts.check(host, port)\n", ""),
    ),
    guard(
        REDIRECTS,
        "the judgement of where it leads",
        (FETCHER, '    if source.kind != "url":', "    if False:"),
        (FETCHER, '        if classify(url).kind != "url":', "        if False:"),
    ),
    guard(REDIRECTS, "the count of hops", (FETCHER, "        for _ in range(MOST_HOPS + 1):", "        for _ in range(1000):")),
    guard(
        "draws proxies, passwords or cookies from the environment",
        "the adapter without a session",
        (
            FETCHER,
            "            return self._adapters.get().send(request, stream=True, timeout=timeout, verify=True)",
            ("            session = requests.Session()\n"
            '            session.mount("http://", self._adapters.get())\n'
            "            return session.get(url, headers=_HEADERS, stream=True, timeout=timeout, allow_redirects=False)"),
        ),
    ),
    guard(
        "draws proxies, passwords or cookies from the environment",
        "the cookies that are dropped unparsed",
        (CONNECTIONS, '        del self.headers["Set-Cookie"], self.headers["Set-Cookie2"]\n', ""),
    ),
    guard(
        "is read differently by two parsers",
        "the form that all parsers read alike",
        ("media/urls.py", "    if not _URL.match(url):\n", "    if False:\n"),
    ),
    guard(SWELLS, "the refusal of compressed bodies", (FETCHER, '            if encoding not in ("", "identity"):', "            if False:")),
    guard(SWELLS, "the deadline of an answer", (CONNECTIONS, "        if left <= 0:\n            raise TimeoutError\n", "        left = max(left, 10.0)\n")),
    guard(SWELLS, "the limit on its bytes", (FETCHER, "                if count > self._limit:", "                if False:")),
    guard(SWELLS, "the length that it states, against the limit", (FETCHER, "        if stated is not None and stated > self._limit:", "        if False:")),
    guard(
        SWELLS,
        "the length that it states, against what came",
        (FETCHER, "        if stated is not None and count != stated:", "        if False:"),
        (FETCHER, "of a negative size\n            raise PassingError(_cut(count, stated)) from None", "of a negative size\n            pass"),
    ),
    guard(
        "holds media tags",
        "the refusal of tags in what is joined",
        ("segments.py", 'if found := _first_tag(value) or (modality != "text" and near_miss(value)) or None:', "if found := None:"),
    ),
    guard(
        "holds a slot, such as `{answer}`",
        "the one pass",
        ("templates/slots.py", "                    return form % found\n", "                    return _SLOT.sub(lambda slot: str(columns.get(slot[1], slot[0])), form % found)\n"),
        ("templates/slots.py", "        return joined_text(out)\n", "        return _SLOT.sub(lambda slot: str(columns.get(slot[1], slot[0])), joined_text(out))\n"),
    ),
    guard(
        "holds a special token or placeholder of the model",
        "the look for them",
        ("meta_template/chat_template.py", "            if found := self.first_in(text):", "            if found := None:"),
    ),
    guard(
        "holds a special token or placeholder of the model",
        "the texts that touch, which are one",
        ("meta_template/chat_template.py", "                run += part.text\n", "                texts.append(part.text)\n"),
    ),
    guard(
        "holds role words, markup or terminal escapes",
        "the escaping of control characters in messages",
        ("cli/__init__.py", '    return "".join([c if c.isprintable() else _escaped(c) for c in text])', "    return text"),
        ("errors/__init__.py", "    if not cut.isprintable():", "    if False:"),
    ),
    guard(
        "is base64 with junk, or too long",
        "the strict decoder",
        ("media/base64_text.py", "data: bytes = b64decode(text, validate=True)", "data: bytes = b64decode(text)"),
    ),
    guard(
        "is base64 with junk, or too long",
        "the length before it is decoded",
        ("media/base64_text.py", "    if limit is not None and len(text) > (limit + 2) // 3 * 4:", "    if False:"),
    ),
    guard(
        "is a data URI that lies about its type",
        "the type that the bytes have",
        ("media/reader.py", "        return MediaPart(modality, media_type, data, (), form,", "        return MediaPart(modality, declared or media_type, data, (), form,"),
    ),
    guard(
        "is a data URI that lies about its type",
        "the note that says so",
        ("media/reader.py", "        if declared and not agree(normal_type(declared), media_type):", "        if False:"),
    ),
    guard("names a second source beside a medium", "the look for such keys", ("targets/hf.py", "            if key in _NAMING:", "            if False:")),
    guard("is Python or a pickle", "the reader that evaluates nothing", ("datasets/list_cells.py", "ast.literal_eval(text)", "eval(text)")),
    guard(TELLS, "the query that is left out", ("media/urls.py", 'plain = re.split(r"[?#]", url[:200], maxsplit=1)[0]', "plain = url[:200]")),
    guard(TELLS, "the password that is left out", ("media/urls.py", '    if "@" in authority:\n        authority = "', '    if False:\n        authority = "')),
    guard(TELLS, "the payload that is left out", ("media/sources.py", 'head = source[:60].lstrip().partition(",")[0]', "head = source[:60].lstrip()")),
    guard(TELLS, "our words in the place of the system's", ("media/file_errors.py", 'return MissingFileError(f"no such file: {shown(name)}", hint,', 'return MissingFileError(f"{error}", hint,')),
    guard(TELLS, "our words in the place of the server's", (FETCHER, 'raise SourceError(f"{in_short(url)} answers {status_words(status)}",', 'raise SourceError(f"{in_short(url)} answers {answer.reason}",')),
    guard(PYTHON, "both looks at what a manifest names", RUNS_PYTHON, NAMES_PYTHON),
    guard(PYTHON, "only a path that was typed is executed", RUNS_PYTHON),
    guard(PYTHON, "the name of Python in a manifest", NAMES_PYTHON),
    guard(
        "is a manifest that names files outside its folder",
        "the look at the names",
        (GRANTS, '        if not is_inside(_parent(name) if any(mark in name for mark in "*?[") else name, [folder]):', "        if False:"),
    ),
    guard(
        "is a manifest that names files outside its folder",
        "the look at the files that were found",
        (GRANTS, "        for path in _files_outside(files, [grants.within]):", "        for path in ():"),
    ),
    guard(
        "is a manifest, plan, baseline or task file that is damaged",
        "the form that it must have",
        ("targets/json_files.py", "    require_form(value, form, hint, path)\n    return value", "    return value"),
    ),
    guard(
        "is a manifest, plan, baseline or task file that is damaged",
        "the levels that it may have",
        ("targets/json_files.py", '    except RecursionError:\n        raise TaskError(_DEEP, "flatten it") from None\n', ""),
    ),
    guard("is a task file that allows more than its own folder and the default limits", "the refusal", (GRANTS, "    if not asked:\n", "    if True:\n")),
    guard(
        "is a task file that allows more than its own folder and the default limits",
        "the links that are followed first",
        (GRANTS, '    real = os.path.join(os.path.realpath(path), "")', '    real = os.path.join(os.path.abspath(path), "")'),
    ),
    guard(
        "is a task file that allows more than its own folder and the default limits",
        "the look at the files that were found",
        (GRANTS, "    outside = dict.fromkeys(map(os.path.dirname, _files_outside(files, allowed)))", "    outside = {}"),
    ),
    guard(
        "is a task file that names the server which gets the key",
        "the refusal",
        ("run/address.py", "    if not _is_loopback(str(asked.hostname)):", "    if False:"),
    ),
    guard(
        "is a task file that names the server which gets the key",
        "the scheme and the port",
        (
            "run/address.py",
            "(check_address(named).scheme, host_and_port(named)) == (asked.scheme, host_and_port(url)):",
            "check_address(named).hostname == asked.hostname:",
        ),
    ),
    guard(
        "is a config that includes files without end",
        "reading each once",
        ("tasks/upstream/includes.py", "        if real not in self._merged:", "        if self._merged.get(real, True):"),
    ),
    guard(
        "is a config that includes files without end",
        "the count",
        ("tasks/upstream/includes.py", "        if self._left < 0:", "        if False:"),
    ),
    guard("is a pattern that walks the whole disk", "the count of names", ("datasets/readers/patterns.py", "        if self._left < 0:", "        if False:")),
    guard(
        "is a pattern that walks the whole disk",
        "the judgement before the walk",
        (GRANTS, "        outside = [d for d in own[1:] if not is_inside(d, [own[0], *grants.roots])]", "        outside = list[str]()"),
    ),
    guard("is a template that takes hours or gigabytes", "the limit on a result", (JINJA, '    if size > LARGEST_OUTPUT:\n        raise ValueError(f"it would', '    if False:\n        raise ValueError(f"it would')),
    guard("is a template that takes hours or gigabytes", "the limit on work", (JINJA, "    if _work.left < 0:", "    if False:")),
    guard("is a template that takes hours or gigabytes", "the indent of JSON", (JINJA, "        if type(indent) is not int or not 0 <= indent <= _MOST_INDENT:", "        if False:")),
    guard(
        "is a template that takes hours or gigabytes",
        "the methods that pad",
        (JINJA, "            return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)", "            return super().is_safe_attribute(obj, attr, value)"),
        (JINJA, '        def wrap_str_format(self, value: Any) -> None:\n            """Refuse ``format``, which jinja2 would allow: ``{:>1000000000}`` makes a gigabyte."""\n', ""),
    ),
    guard(
        "is a server whose answer is no right HTTP, swells or never ends",
        "the error of a row in the place of that of HTTP",
        ("run/client.py", "        except (ValueError, OverflowError):  # of http.client, for chunks of a negative size", "        except ZeroDivisionError:"),
    ),
    guard(
        "is a server whose answer is no right HTTP, swells or never ends",
        "the same where media are fetched",
        (FETCHER, "        except (HTTPError, OSError, ValueError, OverflowError):", "        except (HTTPError, OSError):"),
    ),
    guard(
        "is a server whose answer is no right HTTP, swells or never ends",
        "the bound on what is read",
        (CONNECTIONS, "        if self._left < 0:", "        if False:"),
    ),
    guard(
        "is a server whose answer is no right HTTP, swells or never ends",
        "the bound on a body",
        ("run/client.py", "        if count > _LONGEST_REPLY:", "        if False:"),
    ),
    guard(
        "is a Ray cluster that takes work from anyone on this machine",
        "the token",
        ("scale/ray_engine.py", '        settings |= {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}\n', ""),
    ),
    guard(
        "is a Ray cluster that takes work from anyone on this machine",
        "the variable with which Kubernetes says who may work",
        ("scale/ray_engine.py", '        settings |= {"RAY_ENABLE_K8S_TOKEN_AUTH": "0"}', "        pass"),
    ),
    guard(
        "has the name of a medium of the dataset",
        "the first bytes of what is there",
        ("media/outputs.py", "    if (kind := sniff(head)) is not None:", "    if (kind := sniff(head)) is not None and False:"),
    ),
    guard(
        "has the name of a medium of the dataset",
        "the look at each file that is opened",
        ("media/outputs.py", "    if path is not None:\n        raise _Opened", "    if False:\n        raise _Opened"),
        ("media/files.py", "(status.st_dev, status.st_ino) in REPLACED  # it is refused below", "False"),
    ),
    guard(
        "has the name of a medium of the dataset",
        "the look where most files are read",
        ("media/files.py", "(status.st_dev, status.st_ino) in REPLACED  # it is refused below", "False"),
    ),
    guard(
        "has the name of a file that the command reads",
        "the look at each file that is opened",
        ("media/outputs.py", "    if path is not None:\n        raise _Opened", "    if False:\n        raise _Opened"),
    ),
    guard(
        "has the name of a file that the command reads",
        "the look at standard input",
        ("media/outputs.py", "        return\n    refuse_replaced(status)\n", "        return\n"),
    ),
    guard(
        "is a link in the place of a manifest, lock, state or part",
        "the look before something is written there",
        (SIDE, "    require_regular(path)\n    if cleans:", "    if cleans:"),
    ),
    guard(
        "is a link in the place of a manifest, lock, state or part",
        "the open that follows no link",
        (SIDE, 'follow = 0 if typed else getattr(os, "O_NOFOLLOW", 0)\n    if not typed and not follow:', "follow = 0\n    if False:"),
    ),
    guard(
        "is a link in the place of a work folder, or in it",
        "the look at the folder",
        ("scale/work_folder.py", "        if os.path.islink(self.path) or not os.path.isdir(self.path):", "        if not os.path.isdir(self.path):"),
        ("scale/work_folder.py", "names = [] if os.path.islink(self.path) else filter(", "names = filter("),
    ),
    guard(
        "is a link in the place of a work folder, or in it",
        "the look at what is in it",
        ("scale/work_folder.py", "                if not stat.S_ISREG(os.lstat(os.path.join(self.path, name)).st_mode):", "                if False:"),
    ),
    guard(
        "is a link in the place of a work folder, or in it",
        "only our own files go",
        ("scale/work_folder.py", "else filter(_OWN.fullmatch, os.listdir(self.path))", "else os.listdir(self.path)"),
    ),
    guard(
        "is a pipe in the place of a journal, manifest, plan, state or baseline",
        "the open that does not wait",
        (SIDE, 'for _name in ("O_NONBLOCK", "O_NOCTTY",', 'for _name in ("O_NOCTTY",'),
    ),
    guard(
        "is a pipe in the place of a journal, manifest, plan, state or baseline",
        "only regular files",
        (SIDE, "    if not stat.S_ISREG(os.fstat(descriptor).st_mode):", "    if False:"),
    ),
    guard(
        "has the name of a file that is not ours",
        "the lock that is empty",
        ("run/side_lock.py", "                if os.fstat(descriptor).st_size:", "                if False:"),
    ),
    guard(
        "has the name of a file that is not ours",
        "the medium that holds the same",
        ("datasets/writers/output_file.py", "    if not same:\n        raise TaskError", "    if False:\n        raise TaskError"),
    ),
    guard(
        "has the name of a file that is not ours",
        "the folder of media that is no link",
        ("datasets/writers/output_file.py", "    if os.path.islink(folder):\n", "    if False:\n"),
    ),
    guard(
        "has the name of a file that is not ours",
        "the first line of a journal",
        ("run/journal_file.py", "        _require_journal(path)\n", ""),
    ),
    guard(
        "is half written when the run is killed or the disk is full",
        "the name that comes last",
        (
            "datasets/whole_file.py",
            "    part = _Part(path)\n    try:\n        writer = ChunkWriter(part.descriptor)\n",
            ('    with open(path, "wb", buffering=0) as file:\n        writer = ChunkWriter(file)\n        yield writer\n        writer.flush()\n    return\n'
            "    part = _Part(path)\n    try:\n        writer = ChunkWriter(part.descriptor)\n"),
        ),
        tests=(*FULL_DISK, "../cli/test_kills.py::test_what_is_there_after_a_kill_is_old_or_whole[render]"),
    ),
    guard(
        "is half written when the run is killed or the disk is full",
        "the name that a failed run does not get",
        ("datasets/whole_file.py", "            if keeps and isinstance(error, _ENDS) and not _is_about(error, path):", "            if True:"),
        tests=FULL_DISK,
    ),
)  # fmt: skip
