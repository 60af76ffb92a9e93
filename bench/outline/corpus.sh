#!/bin/sh
# Gathers source files of many authors into .corpus/tune/<language>/ and
# .corpus/report/<language>/, for measuring the outline. The rules of the scanners were
# fixed by looking at files of tune only; report has other projects.
# Needs Debian or Ubuntu (apt-get, dpkg-deb), npm, Go and the network; nothing is installed.
set -eu
cd "$(dirname "$0")"
here=$PWD
. /etc/os-release

# fetch SET DEBIAN-PACKAGES SOURCES NPM-PACKAGES, into .download/SET. Debian's are as it has
# them today; npm's, pinned, are ones that contain the sources they are made from.
fetch() {
	dir=$here/.download/$1
	[ -e "$dir/done" ] && return
	mkdir -p "$dir/deb" "$dir/npm" "$dir/source" "$dir/lists/partial"
	cd "$dir"
	for p in $2; do apt-get download "$p" || echo "no package $p; left out" >&2; done
	for d in *.deb; do dpkg-deb -x "$d" "deb/${d%%_*}"; done
	echo "deb-src http://deb.debian.org/debian $VERSION_CODENAME main" >sources.list
	apt="apt-get -o Dir::Etc::sourcelist=$PWD/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists"
	$apt update
	for p in $3; do $apt source --download-only "$p" || echo "no source of $p; perhaps in part" >&2; done
	for t in *.orig*.tar.*; do case $t in *.asc) ;; *) tar -C source -xf "$t" ;; esac; done
	for p in $4; do (cd npm && npm pack --silent "$p" >/dev/null) || echo "no package $p; left out" >&2; done
	for t in npm/*.tgz; do mkdir -p "${t%.tgz}" && tar -C "${t%.tgz}" -xzf "$t" 2>/dev/null || true; done
	find deb -name src.zip -exec unzip -qo {} 'java.base/java/*' 'java.desktop/javax/swing/*' 'java.net.http/*' 'jdk.compiler/*' -d java \;
	touch done
	cd "$here"
}

# pick SET LANGUAGE LIMIT PATTERN DIRECTORY...: files of 1 to 200 kB by the hash of their
# path, so that no one chooses them.
pick() {
	out=$here/.corpus/$1/$2 limit=$3 pattern=$4
	shift 4
	mkdir -p "$out"
	find "$@" -type f -name "$pattern" -size +2 -size -400 ! -name '*.min.js' ! -name '*.d.ts' 2>/dev/null | while read -r f; do
		printf '%s %s\n' "$(printf %s "${f##*.download/}" | md5sum | cut -c1-12)" "$f"
	done | sort | head -n "$limit" | while read -r hash f; do
		cp "$f" "$out/$hash-$(basename "$f")"
	done
	echo "$out: $(ls "$out" | wc -l) files"
}

# picks SET GO-DIRECTORIES C-PROJECTS C++-PROJECTS
picks() {
	d=$here/.download/$1
	# shellcheck disable=SC2086 # lists of directories
	pick "$1" go 400 '*.go' $2
	pick "$1" python 400 '*.py' "$d"/deb
	pick "$1" typescript 400 '*.ts' "$d"/npm
	pick "$1" tsx 400 '*.tsx' "$d"/npm
	pick "$1" javascript 350 '*.js' "$d"/npm
	pick "$1" javascript 50 '*.[mc]js' "$d"/npm
	pick "$1" java 400 '*.java' "$d"/java "$d"/npm "$d"/source
	pick "$1" rust 400 '*.rs' "$d"/deb "$d"/source
	pick "$1" c 400 '*.[ch]' $3
	pick "$1" cpp 250 '*.cc' $4 "$d"/npm
	pick "$1" cpp 200 '*.c[px][px]' $4 "$d"/npm
	pick "$1" cpp 150 '*.hpp' "$d"/deb
	pick "$1" cpp 150 '*.h' $4
	pick "$1" csharp 400 '*.cs' "$d"/source
	pick "$1" ruby 400 '*.rb' "$d"/deb
	pick "$1" php 400 '*.php' "$d"/deb
	pick "$1" kotlin 400 '*.kt' "$d"/npm
	pick "$1" swift 400 '*.swift' "$d"/npm
	pick "$1" markdown 400 '*.md' "$d"/npm "$d"/source "$d"/deb
}

fetch tune "rust-src openjdk-17-source libruby3.1 ruby-activerecord ruby-actionpack libboost1.74-dev python3-django
	python3-sympy python3-sqlalchemy phpunit php-symfony-console php-symfony-http-foundation php-twig" \
	"redis curl leveldb re2 keepass2 nunit" \
	"rxjs@7.8.1 typescript@5.6.3 mobx@6.13.5 @reduxjs/toolkit@2.3.0 zod@4.1.5 date-fns@4.1.0
	express@4.21.1 lodash@4.17.21 eslint@9.14.0 webpack@5.96.1 three@0.170.0 react-dom@18.3.1
	@blueprintjs/core@5.15.0 react-native-paper@5.12.5 @react-navigation/stack@6.4.1 @react-navigation/drawer@6.7.2
	@react-navigation/elements@1.3.31 @react-aria/focus@3.18.4 @capacitor/ios@6.1.2 @capacitor/android@6.1.2
	react-native@0.76.1 expo-modules-core@2.0.0"
fetch report "librust-tokio-dev librust-serde-dev librust-regex-dev librust-rayon-dev librust-clap-dev librust-syn-dev
	ruby-rspec-core ruby-sinatra ruby-nokogiri puppet-agent ruby-faker jekyll vagrant
	python3-twisted python3-numpy python3-jinja2 python3-docutils mercurial-common
	php-doctrine-orm php-guzzlehttp-guzzle php-monolog composer php-phpseclib libcgal-dev" \
	"jq tmux libevent nginx snappy ninja-build capnproto tinyxml2 jsoncpp commons-lang3 junit4 guava-libraries
	dbus-sharp dbus-sharp-glib gbrainy taglib-sharp log4net nini gtk-sharp3 mono-addins" \
	"immer@10.1.1 rxdb@15.39.0 @tanstack/query-core@5.59.0 @tanstack/table-core@8.20.5 ethers@6.13.4 ts-pattern@5.5.0
	@tanstack/react-query@5.59.0 @react-navigation/native-stack@6.11.0 @react-navigation/bottom-tabs@6.6.1
	react-native-gesture-handler@2.20.2 react-native-reanimated@3.16.1 react-native-screens@3.35.0 @gorhom/bottom-sheet@4.6.4
	mocha@10.8.2 jquery@3.7.1 underscore@1.13.7 koa@2.15.3 ramda@0.30.1 moment@2.30.1 chart.js@4.4.6 async@3.2.6 npm@10.9.0
	expo-camera@16.0.0 expo-image@2.0.0 expo-file-system@18.0.0 expo-location@18.0.0 expo-notifications@0.29.0
	expo-av@15.0.0 expo-updates@0.26.0"

rm -rf .corpus
s=.download/tune/source
picks tune "$(go env GOROOT)/src" "$(echo $s/redis* $s/curl*)" "$(echo $s/leveldb* $s/re2*)"
s=.download/report/source
picks report "$(cd ../.. && go list -m -f '{{.Dir}}' all | grep "$(go env GOMODCACHE)")" \
	"$(echo $s/jq* $s/tmux* $s/libevent* $s/nginx*)" "$(echo $s/snappy* $s/ninja* $s/capnproto* $s/tinyxml2* $s/jsoncpp*)"
