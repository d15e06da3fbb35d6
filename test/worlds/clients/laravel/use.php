<?php
require '/usr/share/php/Illuminate/Database/autoload.php';
require getenv('TESTS') . '/../tap.php';

use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Database\Eloquent\Model;
use Illuminate\Support\Facades\Facade;

$manager = new Manager;
$manager->addConnection([
    'driver' => 'pgsql', 'host' => getenv('PGHOST'), 'port' => getenv('PGPORT'),
    'database' => getenv('PGDATABASE'), 'username' => getenv('PGUSER'), 'charset' => 'utf8',
]);
$manager->setAsGlobal();
$manager->bootEloquent();

// The facades DB and Schema, as an application has them.
$app = new Container;
$app->instance('db', $manager->getDatabaseManager());
$app->bind('db.schema', fn () => $manager->schema());
Facade::setFacadeApplication($app);

class Customer extends Model
{
    public $timestamps = false;
    protected $guarded = [];

    public function orders()
    {
        return $this->hasMany(Order::class);
    }
}

class Order extends Model
{
    public $timestamps = false;
    protected $guarded = [];
}

// The migrations of the old application.
function createTables()
{
    Manager::schema()->create('customers', function ($table) {
        $table->increments('id');
        $table->string('name');
    });
    Manager::schema()->create('orders', function ($table) {
        $table->id();
        $table->unsignedInteger('customer_id');
        $table->foreign('customer_id')->references('id')->on('customers');
    });
}

function useTables($what)
{
    $customer = Customer::create(['name' => 'a']);
    $order = $customer->orders()->create([]);
    same(Customer::find($customer->id)->name, 'a', "$what: create has the key of the row");
    same(Order::find($order->id)->customer_id, $customer->id, "$what: a foreign key");
    return $customer->id;
}

if (isset($argv[1])) {
    createTables();
    ok(useTables('its own migrations') < 1000000, 'increments() stays local');
    ok(Order::max('id') > 10 ** 18, 'id() gives IDs');
    finish();
}

(require 'create.php')->up();
require 'Invoice.php';
$invoice = App\Models\Invoice::create(['name' => 'a']);
ok($invoice->getRawOriginal('id') > 10 ** 18, 'a snowflake ID', $invoice->id);
same(App\Models\Invoice::find($invoice->id)->name, 'a', "and it is the row's");
same(json_decode($invoice->toJson())->id, (string) $invoice->getRawOriginal('id'), 'JSON, as a string');
same(json_decode(App\Models\Invoice::first()->toJson())->id, (string) $invoice->getRawOriginal('id'), 'when it was read, too');
App\Models\Invoice::insert(array_map(fn ($i) => ['name' => "$i"], range(1, 1000)));
same(App\Models\Invoice::distinct()->count('id'), 1001, 'a bulk insert');
$id = Manager::table('invoices')->insertGetId(['name' => 'x']);
same(Manager::table('invoices')->where('id', $id)->value('name'), 'x', 'insertGetId');

// Taken over
createTables();
ok(useTables('old') < 1000000, 'old keys are small');
(require 'convert.php')->up();
ok(useTables('converted') > 10 ** 18, 'new keys are snowflake IDs');
finish();
